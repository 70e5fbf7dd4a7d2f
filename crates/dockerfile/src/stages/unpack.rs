//! Archives that `ADD` unpacks.

use wincimg_layer::archive::{ArchiveError, Archives, Format, Selection, Unpacked};
use wincimg_recipe::PlannedContent;

/// What `ADD` makes of a file: all that is in a tar, however it is compressed. A zip stays one, as
/// Docker has it.
pub(super) fn added(
    archives: &Archives,
    content: &PlannedContent,
) -> Result<Option<Vec<Unpacked>>, ArchiveError> {
    let PlannedContent::File(source) = content else {
        return Ok(None);
    };
    match source.archive(archives)? {
        Some(archive) if matches!(archive.format(), Format::Tar(_)) => {
            archive.unpacked(&Selection::default()).map(Some)
        }
        _ => Ok(None),
    }
}
