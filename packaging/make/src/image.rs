//! The container image of wincimg itself, written without a daemon: one layer with what a program
//! finds around it on any Linux, one with the program, for each processor.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;
use object::elf::{EM_AARCH64, EM_X86_64, PT_INTERP};
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use serde_json::json;
use wincimg_common::diagnose::Problem;
use wincimg_common::progress::Silent;
use wincimg_oci::document::{
    Descriptor, Digest, Document, History, Image, Index, ManifestFormat, Platform, Verbatim,
    media_type, sha256,
};
use wincimg_oci::remote::{RegistryClient, RegistryOptions};
use wincimg_oci::store::{Location, Sink, Source};

/// Who the program is in a container: nobody that a machine knows.
const USER: u32 = 65532;
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Contents of an image.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    /// The static program for a processor, such as amd64=FILE; several make an index
    #[arg(long = "program", value_name = "ARCH=FILE", required = true)]
    programs: Vec<Program>,
    /// The CAs to trust, as one file
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/ssl/certs/ca-certificates.crt"
    )]
    certificates: PathBuf,
    /// A text that goes along in /usr/share/doc (repeatable)
    #[arg(long = "doc", value_name = "NAME=FILE")]
    docs: Vec<Doc>,
    /// The version, as the image's label has it
    #[arg(long)]
    version: String,
    /// The commit, likewise
    #[arg(long)]
    revision: String,
    /// The time of everything inside, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    epoch: i64,
    /// Put it on this image instead of on nothing, for those who need a shell beside it
    #[arg(long, value_name = "IMAGE")]
    on: Option<String>,
    /// Allow plain HTTP or an unverified certificate for this registry alone (repeatable)
    #[arg(long, value_name = "HOST[:PORT]")]
    insecure_registry: Vec<String>,
    /// Destination: oci:DIR:TAG, docker-archive:FILE:NAME or HOST/NAME:TAG (repeatable)
    #[arg(long, value_name = "PLACE", required = true)]
    to: Vec<String>,
}

#[derive(Debug, Clone)]
struct Program {
    architecture: String,
    file: PathBuf,
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((architecture @ ("amd64" | "arm64"), file)) => Ok(Self {
                architecture: architecture.to_owned(),
                file: file.into(),
            }),
            _ => Err("expected amd64=FILE or arm64=FILE".to_owned()),
        }
    }
}

#[derive(Debug, Clone)]
struct Doc {
    name: String,
    file: PathBuf,
}

impl FromStr for Doc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, file) = text.split_once('=').ok_or("expected NAME=FILE")?;
        Ok(Self {
            name: name.to_owned(),
            file: file.into(),
        })
    }
}

/// A layer with its bytes.
#[derive(Clone)]
struct PackagedLayer {
    blob: Descriptor,
    diff_id: Digest,
    history: History,
    bytes: Bytes,
}

impl PackagedLayer {
    /// The image with this layer on top.
    fn on(&self, image: &Image) -> Result<Image, Problem> {
        let (blob, diff_id) = (self.blob.clone(), self.diff_id.clone());
        image.append_layer(blob, diff_id, self.history.clone())
    }
}

/// The image that another one is put on.
struct Base {
    source: Source,
    root: Document,
}

/// Makes the image and brings it to every place; returns its digest.
pub(crate) async fn write(args: &ImageArgs) -> Result<String> {
    let registry = RegistryClient::new(
        RegistryOptions {
            insecure: args.insecure_registry.clone(),
            ..RegistryOptions::default()
        },
        Arc::new(Silent),
    )?;
    let base = match &args.on {
        Some(name) => Some(Base::open(name, &registry).await?),
        None => None,
    };
    let around = args.surroundings()?;
    let mut images = Vec::new();
    let mut blobs = vec![around.clone()];
    for program in &args.programs {
        let layer = args.program(program)?;
        let start = match &base {
            Some(base) => base.image(&program.architecture).await?,
            None => Image::empty(ManifestFormat::Oci, linux(&program.architecture))?,
        };
        let image = args.labelled(&start)?;
        let image = around.on(&image)?;
        images.push(layer.on(&image)?);
        blobs.push(layer);
    }
    let root = args.root(&images)?;
    for place in &args.to {
        let location: Location = place.parse()?;
        let (tag, sink) = (tag_of(&location), Sink::create(&location, &registry).await?);
        if let Some(base) = &base {
            base.publish(&images, &blobs, &sink).await?;
        }
        for blob in &blobs {
            sink.put_blob(&blob.blob, &blob.bytes, &Silent).await?;
        }
        for image in &images {
            let config = image.manifest().config.clone();
            sink.put_blob(&config, image.config().bytes(), &Silent)
                .await?;
            let manifest = Document::Manifest(Box::new(image.manifest().clone()));
            if manifest.digest() != root.digest() {
                sink.put_document(&manifest).await?;
            }
        }
        sink.publish(&root, tag.as_deref()).await?;
        sink.finish().await?;
    }
    Ok(root.digest().to_string())
}

fn tag_of(location: &Location) -> Option<String> {
    match location {
        Location::Registry(reference) => reference.tag().map(str::to_owned),
        Location::Layout { tag, .. } => tag.clone(),
        Location::Archive { name, .. } => name.clone(),
    }
}

fn linux(architecture: &str) -> Platform {
    Platform {
        architecture: architecture.to_owned(),
        os: "linux".to_owned(),
        // As containerd names it for every machine of that kind.
        variant: (architecture == "arm64").then(|| "v8".to_owned()),
        ..Platform::default()
    }
}

impl ImageArgs {
    fn created(&self) -> Result<String> {
        Ok(Timestamp::from_second(self.epoch)?.to_string())
    }

    fn labels(&self) -> Result<BTreeMap<String, String>> {
        let home = env!("CARGO_PKG_REPOSITORY");
        let labels = [
            ("title", "wincimg".to_owned()),
            (
                "description",
                "Builds, checks and moves Windows container images, from Linux too".to_owned(),
            ),
            ("version", self.version.clone()),
            ("revision", self.revision.clone()),
            ("created", self.created()?),
            ("source", home.to_owned()),
            (
                "documentation",
                format!("{home}/blob/v{}/docs/guide.md", self.version),
            ),
            ("licenses", "Apache-2.0".to_owned()),
        ];
        let named = |(name, value)| (format!("org.opencontainers.image.{name}"), value);
        Ok(labels.map(named).into())
    }

    /// The image with what says how it starts, and what it is.
    fn labelled(&self, image: &Image) -> Result<Image> {
        let (created, labels) = (self.created()?, self.labels()?);
        let alone = self.on.is_none();
        Ok(image.edit_config(|config| {
            config.created = Some(created);
            let inner = &mut config.config;
            inner.labels.extend(labels);
            inner.user = Some(format!("{USER}:{USER}"));
            inner.working_dir = Some("/work".to_owned());
            inner
                .env
                .retain(|entry| !entry.starts_with("SSL_CERT_FILE="));
            inner.env.push(format!("SSL_CERT_FILE=/{CERTIFICATES}"));
            // Beside a shell, pipelines start that.
            if alone {
                inner.env.push("PATH=/usr/bin".to_owned());
                inner.entrypoint = Some(vec!["/usr/bin/wincimg".to_owned()]);
                inner.cmd = Some(vec!["--help".to_owned()]);
            } else {
                // Its users do not include ours, whose home would be /, where `login` cannot write.
                inner.env.retain(|entry| !entry.starts_with("HOME="));
                inner.env.push("HOME=/home/wincimg".to_owned());
            }
        })?)
    }

    /// Files that programs expect on Linux: a user, folders to write to, CAs, the licences.
    fn surroundings(&self) -> Result<PackagedLayer> {
        let mut tar = Tar::new(self.epoch)?;
        tar.folder("etc", 0o755, 0)?;
        // Another image has users of its own.
        if self.on.is_none() {
            let passwd = format!(
                "root:x:0:0:root:/root:/sbin/nologin\n\
                 wincimg:x:{USER}:{USER}:wincimg:/home/wincimg:/sbin/nologin\n"
            );
            tar.file("etc/passwd", 0o644, passwd.as_bytes())?;
            let group = format!("root:x:0:\nwincimg:x:{USER}:\n");
            tar.file("etc/group", 0o644, group.as_bytes())?;
        }
        tar.folder("etc/ssl", 0o755, 0)?;
        tar.folder("etc/ssl/certs", 0o755, 0)?;
        let certificates = read(&self.certificates)?;
        if !certificates.windows(5).any(|part| part == b"BEGIN") {
            bail!("{} has no certificate", self.certificates.display());
        }
        tar.file(CERTIFICATES, 0o644, &certificates)?;
        tar.folder("home", 0o755, 0)?;
        tar.folder("home/wincimg", 0o750, USER)?;
        tar.folder("tmp", 0o1777, 0)?;
        for folder in ["usr", "usr/share", "usr/share/doc", "usr/share/doc/wincimg"] {
            tar.folder(folder, 0o755, 0)?;
        }
        let mut docs = self.docs.clone();
        docs.sort_by(|a, b| a.name.cmp(&b.name));
        for doc in docs {
            let path = format!("usr/share/doc/wincimg/{}", doc.name);
            tar.file(&path, 0o644, &read(&doc.file)?)?;
        }
        tar.folder("work", 0o755, USER)?;
        tar.finish("certificates, a user, folders", &self.created()?)
    }

    fn program(&self, program: &Program) -> Result<PackagedLayer> {
        let bytes = read(&program.file)?;
        check_program(&bytes, &program.architecture)
            .with_context(|| format!("cannot put {} into an image", program.file.display()))?;
        let mut tar = Tar::new(self.epoch)?;
        tar.folder("usr", 0o755, 0)?;
        tar.folder("usr/bin", 0o755, 0)?;
        tar.file("usr/bin/wincimg", 0o755, &bytes)?;
        tar.finish(&format!("wincimg {}", self.version), &self.created()?)
    }

    /// The image where there is one, an index over them where there are several.
    fn root(&self, images: &[Image]) -> Result<Document> {
        if let [image] = images {
            return Ok(Document::Manifest(Box::new(image.manifest().clone())));
        }
        let entries = images.iter().map(Image::index_entry).collect();
        let mut index = Index::new(ManifestFormat::Oci, entries);
        index
            .other
            .insert("annotations".to_owned(), json!(self.labels()?));
        Ok(Document::Index(Verbatim::new(index)?))
    }
}

/// A container with nothing else in it starts only what needs nothing else.
fn check_program(bytes: &[u8], architecture: &str) -> Result<()> {
    let wanted = match architecture {
        "arm64" => EM_AARCH64,
        _ => EM_X86_64,
    };
    let file: ElfFile64<'_> =
        ElfFile64::parse(bytes).context("it is not an ELF program of 64 bits")?;
    let endian = file.endian();
    let machine = file.elf_header().e_machine(endian);
    if machine != wanted {
        bail!("it is for machine {machine}, and {architecture} is {wanted}");
    }
    let mut headers = file.elf_program_headers().iter();
    if headers.any(|header| header.p_type(endian) == PT_INTERP) {
        bail!("it is linked dynamically: build it with packaging/binaries");
    }
    Ok(())
}

impl Base {
    async fn open(name: &str, registry: &RegistryClient) -> Result<Self> {
        let location: Location = name.parse()?;
        let source = Source::open(&location, registry).await?;
        let root = source.resolve(tag_of(&location).as_deref()).await?;
        Ok(Self { source, root })
    }

    /// Its image for a processor.
    async fn image(&self, architecture: &str) -> Result<Image> {
        let image = match &self.root {
            Document::Manifest(manifest) => self.source.image((**manifest).clone()).await?,
            Document::Index(index) => {
                let fits = |entry: &&Descriptor| {
                    media_type::is_manifest(&entry.media_type)
                        && entry.platform.as_ref().is_some_and(|platform| {
                            platform.os == "linux" && platform.architecture == architecture
                        })
                };
                let entry = index.manifests.iter().find(fits);
                let entry =
                    entry.ok_or_else(|| anyhow!("the base has no image for {architecture}"))?;
                match self.source.document(entry).await? {
                    Document::Manifest(manifest) => self.source.image(*manifest).await?,
                    Document::Index(_) => bail!("the base has an index in its index"),
                }
            }
        };
        if image.config().architecture != architecture {
            bail!(
                "the base is for {}, not {architecture}",
                image.config().architecture
            );
        }
        Ok(image.in_format(ManifestFormat::Oci)?)
    }

    /// Its layers, to where the image goes.
    async fn publish(&self, images: &[Image], ours: &[PackagedLayer], sink: &Sink) -> Result<()> {
        let is_ours = |blob: &Descriptor| ours.iter().any(|made| made.blob.digest == blob.digest);
        for blob in images.iter().flat_map(|image| &image.manifest().layers) {
            if !is_ours(blob) && !sink.has_blob(blob).await? {
                sink.copy_blob(blob, &self.source.blob(blob)?, &Silent)
                    .await?;
            }
        }
        Ok(())
    }
}

/// A layer that is being written: the same files give the same bytes.
struct Tar {
    builder: tar::Builder<Vec<u8>>,
    time: u64,
}

impl Tar {
    fn new(epoch: i64) -> Result<Self> {
        Ok(Self {
            builder: tar::Builder::new(Vec::new()),
            time: epoch.try_into().context("a time before 1970")?,
        })
    }

    fn header(&self, mode: u32, owner: u32, kind: tar::EntryType) -> tar::Header {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner.into());
        header.set_gid(owner.into());
        header.set_mtime(self.time);
        header
    }

    fn folder(&mut self, path: &str, mode: u32, owner: u32) -> Result<()> {
        let mut header = self.header(mode, owner, tar::EntryType::Directory);
        header.set_size(0);
        Ok(self
            .builder
            .append_data(&mut header, format!("{path}/"), &[][..])?)
    }

    fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        let mut header = self.header(mode, 0, tar::EntryType::Regular);
        header.set_size(bytes.len() as u64);
        Ok(self.builder.append_data(&mut header, path, bytes)?)
    }

    fn finish(self, what: &str, created: &str) -> Result<PackagedLayer> {
        let tar = self.builder.into_inner()?;
        let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
        gzip.write_all(&tar)?;
        let bytes = Bytes::from(gzip.finish()?);
        let blob = Descriptor::new(
            media_type::OCI_LAYER_GZIP,
            sha256(&bytes),
            bytes.len() as u64,
        );
        Ok(PackagedLayer {
            blob,
            diff_id: sha256(&tar),
            history: History {
                created: Some(created.to_owned()),
                created_by: Some(format!("packaging/image: {what}")),
                ..History::default()
            },
            bytes,
        })
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("could not read {}", file.display()))
}
