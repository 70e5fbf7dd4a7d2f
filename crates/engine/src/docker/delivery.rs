//! Delivery by a Docker daemon: it builds the images while their destinations are checked.

use wincimg_common::diagnose::{BoxError, Problem, error_chain};
use wincimg_dockerfile::stages::Stages;
use wincimg_dockerfile::{RenderedDockerfile, render};
use wincimg_oci::reference::parse_reference;

use super::daemon::Daemon;
use super::endpoint::{Endpoint, Environment};
use super::{DockerEngine, Info, Preflight};
use crate::build::{BuildContext, EngineOptions};
use crate::delivery::{BuiltImage, Delivery, DeliveryReport, DeliveryTarget};
use crate::plans::{BuildRequest, PlannedImage};
use crate::publication::Publication;

/// Lets a daemon build the images of a publication. Images that are not pushed are named after the
/// given registry too.
pub(crate) async fn deliver_by_docker(
    request: &BuildRequest,
    publication: &Publication<'_>,
    obstacle: Option<&Problem>,
    target: &DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> Result<DeliveryReport, BoxError> {
    let images = publication.images.iter();
    let dockerfiles = images.map(|image| dockerfile(request, image.planned));
    let dockerfiles: Vec<RenderedDockerfile> = dockerfiles.collect::<Result<_, _>>()?;
    let options = &request.options;
    let reached = connect_windows(options, &only_build(publication)).await;
    let (daemon, info) = reached.map_err(|error| match obstacle {
        None => error,
        Some(why) => Problem::context(format!("a Docker daemon is required: {why}"), error).into(),
    })?;
    let mut docker = options.for_daemon();
    let settings = &daemon.endpoint().settings;
    settings.add_proxies(&mut docker.arguments);
    let mut engine = DockerEngine {
        daemon: &daemon,
        info: &info,
        registry: &ctx.registry,
        options: docker,
        named_after: target.named_after.clone(),
        pushes: target.registry().is_some(),
        progress: ctx.progress.as_ref(),
    };
    let making = async {
        add_login(&mut engine, request).await;
        let made = engine.build_images(publication, &dockerfiles).await?;
        Ok(made
            .into_iter()
            .map(Box::new)
            .map(BuiltImage::InDaemon)
            .collect())
    };
    let delivery = Delivery::new(target, ctx);
    Box::pin(delivery.deliver(publication, making)).await
}

/// Adds the login for the registry of the bases, if a Dockerfile copies from an image there, which may
/// be sent as written.
async fn add_login(engine: &mut DockerEngine<'_>, request: &BuildRequest) {
    let host = request.base_registry.0.host();
    let mut copied = request
        .daemon_stages()
        .into_iter()
        .flat_map(Stages::copied_images);
    if !copied.any(|(_, name)| parse_reference(name).is_ok_and(|image| image.registry() == host)) {
        return;
    }
    let login = engine.ask_registry(host).await;
    match login {
        Ok(login) => engine.options.credentials.extend(login),
        // The daemon may have the image.
        Err(error) => tracing::debug!("docker: {}", error_chain(error.as_ref())),
    }
}

/// The build of Windows of the images, if they have one in common.
fn only_build(publication: &Publication<'_>) -> Vec<u32> {
    let images = publication.images.iter();
    let mut builds: Vec<u32> = images
        .filter_map(|image| Some(image.planned.base.os_version?.build))
        .collect();
    builds.dedup();
    if builds.len() > 1 {
        builds.clear();
    }
    builds
}

/// Connects to a daemon that runs Windows containers; of a builder, to that for the first of
/// the builds.
pub(crate) async fn connect_windows(
    options: &EngineOptions,
    builds: &[u32],
) -> Result<(Daemon, Info), BoxError> {
    let host = options.docker_host.as_deref();
    let endpoint = Endpoint::find(host, &Environment::from_env())?;
    let endpoint = endpoint.for_builds(builds, &options.cluster);
    tracing::debug!("docker: {} ({})", endpoint.address, endpoint.origin);
    let daemon = Daemon::connect(endpoint).await?;
    let info = daemon.info().await?;
    Preflight::new(&daemon, &info).check_windows()?;
    Ok((daemon, info))
}

/// The Dockerfile of an image and its context.
fn dockerfile(
    request: &BuildRequest,
    image: &PlannedImage,
) -> Result<RenderedDockerfile, BoxError> {
    let Some(stages) = request.daemon_stages() else {
        return Ok(render(&image.plan, image.base.inside.as_ref())?);
    };
    let bases = image.stages.bases.iter();
    let pinned = bases.map(|(name, base)| (name.clone(), base.label()));
    let sent = stages.for_daemon(&pinned.collect(), &image.plan.labels);
    Ok(sent?)
}
