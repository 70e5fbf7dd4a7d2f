//! Text report of a build.

use wincimg_engine::delivery::{DeliveredCopy, DeliveredImage, DeliveryReport};
use wincimg_engine::listing::ListedImageFile;
use wincimg_inspect::provenance::AttachmentReport;

use crate::cli::copy::by_digest;
use crate::cli::prelude::*;

/// Writes each image once, with all of its hosts; `kept` describes images that were not pushed.
pub(in crate::cli) fn write_text(
    delivered: &DeliveryReport,
    kept: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    // Hosts are sorted by version, so those that share an image are adjacent.
    let is_same = |a: &DeliveredImage, b: &DeliveredImage| {
        (&a.reference, &a.digest) == (&b.reference, &b.digest)
    };
    for hosts in delivered.images.chunk_by(is_same) {
        write_image(hosts, kept, out)?;
    }
    if let Some(index) = &delivered.index {
        writeln!(out, "{}", index.reference)?;
        writeln!(out, "  index    {}", index.digest)?;
        if !index.kept.is_empty() {
            writeln!(out, "  kept     {}", index.kept.join(", "))?;
        }
        write_copies(&index.copies, out)?;
    }
    Ok(())
}

/// Writes the reference by digest of the index, or of each image.
pub(super) fn write_references(delivered: &DeliveryReport, out: &mut dyn Write) -> io::Result<()> {
    let pinned = |reference: &str, digest: &str| match reference.parse() {
        Ok(location) => by_digest(&location, digest),
        Err(_) => reference.to_owned(),
    };
    if let Some(index) = &delivered.index {
        return writeln!(out, "{}", pinned(&index.reference, &index.digest));
    }
    let mut written = BTreeSet::new();
    for image in &delivered.images {
        // An image in a daemon has only its ID.
        let reference = match image.media_type {
            Some(_) => pinned(&image.reference, &image.digest),
            None => image.digest.clone(),
        };
        if written.insert(reference.clone()) {
            writeln!(out, "{reference}")?;
        }
    }
    Ok(())
}

/// Writes the files that a plan puts into the image, with their sizes.
pub(super) fn write_content(content: &[ListedImageFile], out: &mut dyn Write) -> io::Result<()> {
    if content.is_empty() {
        return Ok(());
    }
    let total: u64 = content.iter().filter_map(|file| file.size).sum();
    let files = count(content.len(), "file");
    let open = content.iter().any(|file| file.size.is_none());
    let at_least = if open { "at least " } else { "" };
    let total = BinaryBytes(total);
    writeln!(out, "content     {files}, {at_least}{total}")?;
    for ListedImageFile { path, size } in content {
        let size = size.map_or_else(|| "?".to_owned(), |size| BinaryBytes(size).to_string());
        writeln!(out, "            {size:>11}  {}", UntrustedText(path))?;
    }
    Ok(())
}

/// Writes paths or references, each on a line of its own.
pub(super) fn write_paths(what: &str, paths: &[String], out: &mut dyn Write) -> io::Result<()> {
    for path in paths {
        writeln!(out, "{what:<12}{}", UntrustedText(path))?;
    }
    Ok(())
}

/// Writes one image, which was delivered for several hosts.
fn write_image(hosts: &[DeliveredImage], kept: &str, out: &mut dyn Write) -> io::Result<()> {
    let Some(image) = hosts.first() else {
        return Ok(());
    };
    writeln!(out, "{}", image.reference)?;
    let mut rows = Rows { out, width: 9 };
    rows.row("digest", &image.digest)?;
    for host in hosts {
        match &host.os_version {
            Some(version) => {
                let build = host.host_build.as_deref().unwrap_or("any");
                let tag = match &host.base.tag {
                    Some(tag) if tag != version => format!(", tag {tag}"),
                    _ => String::new(),
                };
                let is_indexed = host.base.is_indexed && host.engine == "direct";
                let indexed = if is_indexed { ", indexed" } else { "" };
                let matched = &host.base.matched;
                let base = format_args!("{build} on base {version} ({matched}{indexed}){tag}");
                rows.row("host", base)?;
            }
            None => {
                let build = host.host_build.as_ref();
                let build = build.map(|build| format!("{build} and any other"));
                let hosts = build.as_deref().unwrap_or("any");
                rows.row("host", format_args!("{hosts}, in HostProcess containers"))?;
            }
        }
    }
    let own = image.layers.iter().filter(|layer| layer.from != "base");
    let own: Vec<_> = own.collect();
    // Layers in a daemon have no size.
    let sizes: Option<Vec<u64>> = own.iter().map(|layer| layer.size).collect();
    let bytes = sizes.map_or_else(String::new, |sizes| {
        format!(" ({})", BinaryBytes(sizes.iter().sum()))
    });
    let (of_base, number) = (image.layers.len() - own.len(), own.len());
    let is_update = image.engine == "update";
    let what = if is_update { "kept" } else { "new" };
    let layers = format_args!("{of_base} of the base, {number} {what}{bytes}");
    rows.row("layers", layers)?;
    let outcome = match (image.pushed, image.up_to_date) {
        (true, true) => "up to date, nothing was sent",
        (true, false) => "pushed",
        (false, _) => kept,
    };
    writeln!(rows.out, "  {outcome}")?;
    write_documents(&image.documents, rows.out)?;
    write_copies(&image.copies, rows.out)
}

fn write_documents(documents: &[AttachmentReport], out: &mut dyn Write) -> io::Result<()> {
    for document in documents {
        let was = if document.up_to_date {
            "present"
        } else {
            "attached"
        };
        let (name, digest) = (document.document, &document.digest);
        let size = BinaryBytes(document.size);
        writeln!(out, "  {was:<8} {name} ({size}) {digest}")?;
    }
    Ok(())
}

fn write_copies(copies: &[DeliveredCopy], out: &mut dyn Write) -> io::Result<()> {
    for copy in copies {
        writeln!(out, "  written  {}", copy.reference)?;
        writeln!(out, "           {}", copy.digest)?;
        write_documents(&copy.documents, out)?;
    }
    Ok(())
}
