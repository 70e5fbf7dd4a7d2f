//! The profiles. Each row has its public source; documentation of one release is assumed to hold
//! for all.

use super::profile::{Login, NextLink, Profile, Quirk, UploadLocation};

const TOKEN_SPEC: &str = "https://distribution.github.io/distribution/spec/auth/token/";
const GITEA_CODE: &str =
    "https://github.com/go-gitea/gitea/blob/main/routers/api/packages/container/container.go";
const MIB: u64 = 1 << 20;

/// The registry of Microsoft's base images, used by the others.
pub static MCR: Profile = Profile {
    prefix: "",
    login: Login::Open,
    user: "",
    key: "",
    rows: &[(
        Quirk::BlobsFrom("westus.data.mcr.microsoft.com"),
        "https://github.com/microsoft/containerregistry/blob/main/docs/client-firewall-rules.md",
    )],
    ..Profile::at("Microsoft Artifact Registry (MCR)", "mcr.microsoft.com")
};

pub static DOCKER_HUB: Profile = Profile {
    api: "registry-1.docker.io",
    login: Login::Token {
        host: "auth.docker.io",
        path: "/token",
        service: "registry.docker.io",
    },
    key: "https://index.docker.io/v1/",
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
    ..Profile::at("Docker Hub", "docker.io")
};

pub static GHCR: Profile = Profile {
    login: Login::Token {
        host: "ghcr.io",
        path: "/token",
        service: "ghcr.io",
    },
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
    ..Profile::at("GitHub (GHCR)", "ghcr.io")
};

pub static ECR: Profile = Profile {
    user: "AWS",
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
    ..Profile::at(
        "Amazon ECR",
        "123456789012.dkr.ecr.eu-central-1.amazonaws.com",
    )
};

pub static ACR: Profile = Profile {
    login: Login::Token {
        host: "contoso.azurecr.io",
        path: "/oauth2/token",
        service: "contoso.azurecr.io",
    },
    user: "00000000-0000-0000-0000-000000000000",
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
    ..Profile::at("Azure Container Registry", "contoso.azurecr.io")
};

pub static ARTIFACT_REGISTRY: Profile = Profile {
    prefix: "project/me",
    login: Login::Token {
        host: "europe-docker.pkg.dev",
        path: "/v2/token",
        service: "europe-docker.pkg.dev",
    },
    user: "oauth2accesstoken",
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
    ..Profile::at("Google Artifact Registry, gcr.io", "europe-docker.pkg.dev")
};

pub static QUAY: Profile = Profile {
    login: Login::Token {
        host: "quay.io",
        path: "/v2/auth",
        service: "quay.io",
    },
    user: "me+robot",
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
    ..Profile::at("Quay", "quay.io")
};

pub static HARBOR: Profile = Profile {
    login: Login::Token {
        host: "harbor.example.com",
        path: "/service/token",
        service: "harbor-registry",
    },
    user: "robot$me",
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
    ..Profile::at("Harbor", "harbor.example.com")
};

pub static GITLAB: Profile = Profile {
    prefix: "me/project",
    login: Login::Token {
        host: "gitlab.com",
        path: "/jwt/auth",
        service: "container_registry",
    },
    rows: &[(
        Quirk::LastScopeAlone,
        "https://github.com/estesp/manifest-tool/issues/53",
    )],
    ..Profile::at("GitLab", "registry.gitlab.com")
};

pub static ARTIFACTORY: Profile = Profile {
    prefix: "docker-virtual",
    login: Login::Token {
        host: "artifactory.example.com",
        path: "/artifactory/api/docker/docker-virtual/v2/token",
        service: "artifactory.example.com:443",
    },
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
    ..Profile::at("JFrog Artifactory", "artifactory.example.com")
};

pub static NEXUS: Profile = Profile {
    rows: &[(
        Quirk::NextLink(NextLink::Below("/repository/docker-hosted")),
        "https://github.com/sonatype/nexus-public/issues/1011",
    )],
    ..Profile::at("Sonatype Nexus", "nexus.example.com")
};

pub static ZOT: Profile = Profile {
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
    ..Profile::at("zot", "zot.example.com")
};

pub static GITEA: Profile = Profile {
    login: Login::Token {
        host: "gitea.example.com",
        path: "/v2/token",
        service: "container_registry",
    },
    rows: &[
        (Quirk::TokenAnswer(r#"{"token":"T"}"#), GITEA_CODE),
        (Quirk::ScopeStar, GITEA_CODE),
        (Quirk::BasicToo, GITEA_CODE),
        (Quirk::RangeNeeded, GITEA_CODE),
        (Quirk::CountedRange, GITEA_CODE),
        (Quirk::NextLink(NextLink::AfterTags), GITEA_CODE),
    ],
    ..Profile::at("Gitea", "gitea.example.com")
};

pub static DISTRIBUTION_2: Profile = Profile {
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
    ..Profile::at("distribution 2.8", "registry.example.com")
};

pub static DISTRIBUTION_3: Profile = Profile {
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
    ..Profile::at("distribution 3", "registry3.example.com")
};

/// All profiles, in the page's order.
pub static ALL: [&Profile; 15] = [
    &DOCKER_HUB, &MCR, &GHCR, &ECR, &ACR, &ARTIFACT_REGISTRY, &QUAY, &HARBOR, &GITLAB,
    &ARTIFACTORY, &NEXUS, &ZOT, &GITEA, &DISTRIBUTION_2, &DISTRIBUTION_3,
];
