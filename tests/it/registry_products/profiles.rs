//! The profiles. Each row has its public source; documentation of one release is assumed to hold
//! for all.

use super::profile::{Login, NextLink, Profile, Quirk, UploadLocation};

const TOKEN_SPEC: &str = "https://distribution.github.io/distribution/spec/auth/token/";
const GITEA_CODE: &str =
    "https://github.com/go-gitea/gitea/blob/main/routers/api/packages/container/container.go";
const MIB: u64 = 1 << 20;

/// The registry of Microsoft's base images, used by the others.
pub static MCR: Profile = Profile {
    name: "Microsoft Artifact Registry (MCR)",
    host: "mcr.microsoft.com",
    api: "mcr.microsoft.com",
    prefix: "",
    login: Login::Open,
    user: "",
    key: "",
    flags: &[],
    rows: &[(
        Quirk::BlobsFrom("westus.data.mcr.microsoft.com"),
        "https://github.com/microsoft/containerregistry/blob/main/docs/client-firewall-rules.md",
    )],
};

pub static DOCKER_HUB: Profile = Profile {
    name: "Docker Hub",
    host: "docker.io",
    api: "registry-1.docker.io",
    prefix: "me",
    login: Login::Token {
        host: "auth.docker.io",
        path: "/token",
        service: Some("registry.docker.io"),
    },
    user: "me",
    key: "https://index.docker.io/v1/",
    flags: &[],
    rows: &[
        (
            Quirk::TokenAnswer(
                r#"{"token":"T","access_token":"T","expires_in":300,"issued_at":"2026-11-10T10:00:00Z"}"#,
            ),
            TOKEN_SPEC,
        ),
        (
            Quirk::UnknownNeedsPush,
            "https://github.com/docker-archive/docker-registry/issues/1071",
        ),
        (
            Quirk::BlobsFrom("production.cloudfront.docker.com"),
            "https://github.com/docker/docs/pull/25108",
        ),
        (Quirk::Limited, "https://github.com/docker/docs/pull/11648"),
        (
            Quirk::NoDelete(405),
            "https://github.com/docker/hub-feedback/issues/2360",
        ),
        (
            Quirk::TwoParts,
            "https://github.com/plexsystems/sinker/issues/21",
        ),
    ],
};

pub static GHCR: Profile = Profile {
    name: "GitHub (GHCR)",
    host: "ghcr.io",
    api: "ghcr.io",
    prefix: "me",
    login: Login::Token {
        host: "ghcr.io",
        path: "/token",
        service: Some("ghcr.io"),
    },
    user: "me",
    key: "ghcr.io",
    flags: &[],
    rows: &[
        (
            Quirk::PlaceholderScope("repository:user/image:pull"),
            "https://github.com/cloudflare/serverless-registry/issues/148",
        ),
        (
            Quirk::PublicReads,
            "https://github.com/cloudflare/serverless-registry/issues/148",
        ),
        (
            Quirk::TokenRefused(403),
            "https://github.com/cloudflare/serverless-registry/issues/148",
        ),
        (
            Quirk::PieceAtMost(4 * MIB, 416),
            "https://github.com/oras-project/rust-oci-client/issues/35",
        ),
        (
            Quirk::NoDelete(405),
            "https://github.com/podman-container-tools/skopeo/issues/1880",
        ),
        (
            Quirk::PageAtMost(1000),
            "https://github.com/google/go-containerregistry/pull/1102",
        ),
    ],
};

pub static ECR: Profile = Profile {
    name: "Amazon ECR",
    host: "123456789012.dkr.ecr.eu-central-1.amazonaws.com",
    api: "123456789012.dkr.ecr.eu-central-1.amazonaws.com",
    prefix: "me",
    login: Login::Password,
    user: "AWS",
    key: "123456789012.dkr.ecr.eu-central-1.amazonaws.com",
    flags: &[],
    rows: &[
        (
            Quirk::CreateFirst,
            "https://docs.aws.amazon.com/AmazonECR/latest/userguide/docker-push-ecr-image.html",
        ),
        (
            Quirk::Mount(202),
            "https://github.com/aws/containers-roadmap/issues/2860",
        ),
        (
            Quirk::PieceAtLeast(5 * MIB),
            "https://github.com/dotnet/sdk-container-builds/issues/424",
        ),
        (
            Quirk::PieceIs(201),
            "https://github.com/openai/tart/issues/273",
        ),
        (
            Quirk::StuckRange,
            "https://github.com/aws/containers-roadmap/issues/2831",
        ),
        (
            Quirk::BlobsFrom(
                "prod-eu-central-1-starport-layer-bucket.s3.eu-central-1.amazonaws.com",
            ),
            "https://github.com/open-policy-agent/opa/issues/6580",
        ),
        (
            Quirk::PageRefused(1000),
            "https://github.com/google/go-containerregistry/issues/681",
        ),
    ],
};

pub static ACR: Profile = Profile {
    name: "Azure Container Registry",
    host: "contoso.azurecr.io",
    api: "contoso.azurecr.io",
    prefix: "me",
    login: Login::Token {
        host: "contoso.azurecr.io",
        path: "/oauth2/token",
        service: Some("contoso.azurecr.io"),
    },
    user: "00000000-0000-0000-0000-000000000000",
    key: "contoso.azurecr.io",
    flags: &[],
    rows: &[
        (
            Quirk::RefreshToken,
            "https://azure.github.io/acr/AAD-OAuth.html",
        ),
        (
            Quirk::TokenAnswer(r#"{"access_token":"T"}"#),
            "https://github.com/spinnaker/clouddriver/pull/2275",
        ),
        (
            Quirk::BodyAtMost(20 * MIB),
            "https://github.com/goharbor/harbor/issues/23015",
        ),
        (
            Quirk::Location(UploadLocation::State),
            "https://github.com/Azure/acr/issues/866",
        ),
        (
            Quirk::BlobsFrom("contoso.westeurope.data.azurecr.io"),
            "https://learn.microsoft.com/en-us/azure/container-registry/container-registry-dedicated-data-endpoints",
        ),
        (
            Quirk::PageAtMost(1000),
            "https://github.com/Azure/acr/issues/749",
        ),
    ],
};

pub static ARTIFACT_REGISTRY: Profile = Profile {
    name: "Google Artifact Registry, gcr.io",
    host: "europe-docker.pkg.dev",
    api: "europe-docker.pkg.dev",
    prefix: "project/me",
    login: Login::Token {
        host: "europe-docker.pkg.dev",
        path: "/v2/token",
        service: Some("europe-docker.pkg.dev"),
    },
    user: "oauth2accesstoken",
    key: "europe-docker.pkg.dev",
    flags: &[],
    rows: &[
        (
            Quirk::TokenRefused(403),
            "https://github.com/docker/hub-feedback/issues/1771",
        ),
        (
            Quirk::NoPieces(404),
            "https://github.com/dotnet/sdk-container-builds/pull/287",
        ),
        (
            Quirk::Unchallenged(403),
            "https://github.com/containerd/containerd/issues/1318",
        ),
        (
            Quirk::Location(UploadLocation::Once),
            "https://github.com/containerd/containerd/issues/1318",
        ),
    ],
};

pub static QUAY: Profile = Profile {
    name: "Quay",
    host: "quay.io",
    api: "quay.io",
    prefix: "me",
    login: Login::Token {
        host: "quay.io",
        path: "/v2/auth",
        service: Some("quay.io"),
    },
    user: "me+robot",
    key: "quay.io",
    flags: &[],
    rows: &[
        (
            Quirk::PublicReads,
            "https://github.com/deitch/docker_registry2/issues/56",
        ),
        (
            Quirk::PageAtMost(50),
            "https://github.com/regclient/regclient/issues/272",
        ),
        (
            Quirk::NextLink(NextLink::Token),
            "https://github.com/deitch/docker_registry2/issues/56",
        ),
        (
            Quirk::OneFamily,
            "https://github.com/openshift/oc-mirror/issues/253",
        ),
    ],
};

pub static HARBOR: Profile = Profile {
    name: "Harbor",
    host: "harbor.example.com",
    api: "harbor.example.com",
    prefix: "me",
    login: Login::Token {
        host: "harbor.example.com",
        path: "/service/token",
        service: Some("harbor-registry"),
    },
    user: "robot$me",
    key: "harbor.example.com",
    flags: &[],
    rows: &[
        (
            Quirk::TokenAnswer(
                r#"{"token":"T","expires_in":1800,"issued_at":"2026-11-10T10:00:00Z"}"#,
            ),
            "https://github.com/goharbor/harbor/blob/main/src/common/models/token.go",
        ),
        (
            Quirk::Mount(401),
            "https://github.com/goharbor/harbor/issues/17097",
        ),
        (
            Quirk::Location(UploadLocation::PlainHttp),
            "https://github.com/goharbor/harbor/issues/6405",
        ),
    ],
};

pub static GITLAB: Profile = Profile {
    name: "GitLab",
    host: "registry.gitlab.com",
    api: "registry.gitlab.com",
    prefix: "me/project",
    login: Login::Token {
        host: "gitlab.com",
        path: "/jwt/auth",
        service: Some("container_registry"),
    },
    user: "me",
    key: "registry.gitlab.com",
    flags: &[],
    rows: &[(
        Quirk::LastScopeAlone,
        "https://github.com/estesp/manifest-tool/issues/53",
    )],
};

pub static ARTIFACTORY: Profile = Profile {
    name: "JFrog Artifactory",
    host: "artifactory.example.com",
    api: "artifactory.example.com",
    prefix: "docker-virtual",
    login: Login::Token {
        host: "artifactory.example.com",
        path: "/artifactory/api/docker/docker-virtual/v2/token",
        service: Some("artifactory.example.com:443"),
    },
    user: "me",
    key: "artifactory.example.com",
    flags: &[],
    rows: &[
        (
            Quirk::Unchallenged(403),
            "https://github.com/vmware/vic/issues/6738",
        ),
        (
            Quirk::MissingIs(403),
            "https://github.com/google/go-containerregistry/pull/1691",
        ),
        (
            Quirk::EmptyEnd(404),
            "https://github.com/docker/buildx/issues/196",
        ),
        (
            Quirk::NextLink(NextLink::WithoutPrefix),
            "https://github.com/renovatebot/renovate/pull/20745",
        ),
        (
            Quirk::Errors(r#"{"errors":[{"status":400,"message":"M"}]}"#),
            "https://github.com/jfrog/artifactory-docker-examples/issues/168",
        ),
    ],
};

pub static NEXUS: Profile = Profile {
    name: "Sonatype Nexus",
    host: "nexus.example.com",
    api: "nexus.example.com",
    prefix: "me",
    login: Login::Password,
    user: "me",
    key: "nexus.example.com",
    flags: &[],
    rows: &[(
        Quirk::NextLink(NextLink::Below("/repository/docker-hosted")),
        "https://github.com/sonatype/nexus-public/issues/1011",
    )],
};

pub static ZOT: Profile = Profile {
    name: "zot",
    host: "zot.example.com",
    api: "zot.example.com",
    prefix: "me",
    login: Login::Password,
    user: "me",
    key: "zot.example.com",
    flags: &["--manifest-format", "oci"],
    rows: &[
        (
            Quirk::OciOnly(415),
            "https://github.com/project-zot/zot/pull/596",
        ),
        (
            Quirk::LastRange,
            "https://github.com/regclient/regclient/issues/961",
        ),
    ],
};

pub static GITEA: Profile = Profile {
    name: "Gitea",
    host: "gitea.example.com",
    api: "gitea.example.com",
    prefix: "me",
    login: Login::Token {
        host: "gitea.example.com",
        path: "/v2/token",
        service: Some("container_registry"),
    },
    user: "me",
    key: "gitea.example.com",
    flags: &[],
    rows: &[
        (Quirk::TokenAnswer(r#"{"token":"T"}"#), GITEA_CODE),
        (Quirk::ScopeStar, GITEA_CODE),
        (Quirk::BasicToo, GITEA_CODE),
        (Quirk::RangeNeeded, GITEA_CODE),
        (Quirk::CountedRange, GITEA_CODE),
        (Quirk::NextLink(NextLink::AfterTags), GITEA_CODE),
    ],
};

pub static DISTRIBUTION_2: Profile = Profile {
    name: "distribution 2.8",
    host: "registry.example.com",
    api: "registry.example.com",
    prefix: "me",
    login: Login::Password,
    user: "me",
    key: "registry.example.com",
    flags: &[],
    rows: &[
        (
            Quirk::Location(UploadLocation::State),
            "https://github.com/distribution/distribution/issues/479",
        ),
        (
            Quirk::NextLink(NextLink::AllAtOnce),
            "https://github.com/distribution/distribution/issues/1936",
        ),
    ],
};

pub static DISTRIBUTION_3: Profile = Profile {
    name: "distribution 3",
    host: "registry3.example.com",
    api: "registry3.example.com",
    prefix: "me",
    login: Login::Password,
    user: "me",
    key: "registry3.example.com",
    flags: &[],
    rows: &[
        (
            Quirk::Location(UploadLocation::State),
            "https://github.com/distribution/distribution/issues/479",
        ),
        (
            Quirk::PageRefused(1000),
            "https://github.com/distribution/distribution/issues/4844",
        ),
    ],
};

/// All profiles, in the page's order.
pub static ALL: [&Profile; 15] = [
    &DOCKER_HUB, &MCR, &GHCR, &ECR, &ACR, &ARTIFACT_REGISTRY, &QUAY, &HARBOR, &GITLAB,
    &ARTIFACTORY, &NEXUS, &ZOT, &GITEA, &DISTRIBUTION_2, &DISTRIBUTION_3,
];
