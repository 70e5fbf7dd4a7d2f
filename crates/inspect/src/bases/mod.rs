//! Base images: selection of the image of a repository that fits a host, pinned by its digest.

mod best_fit;
mod candidates;
mod dockerfile_name;
mod estimate;
mod flavour;
mod flavour_selector;
mod host_process;
mod list;
mod local;
mod name;
mod resolve;
mod tag;
mod tag_target;
mod tags_by_image;

pub use best_fit::{BaseMatch, Fit, Span};
pub use candidates::NearestImage;
pub use dockerfile_name::{MICROSOFT, NamedBase};
pub use flavour::BaseFlavour;
pub use flavour_selector::FlavourSelector;
pub use host_process::{
    HOST_PROCESS, find_host_process, find_host_process_image, find_published_host_process,
    is_host_process, is_published_host_process,
};
pub use list::{BaseListing, BaseListingEntry};
pub use local::read_local_base;
pub use name::{BASE_NAMES, BaseName, BaseNameError, BaseRegistry, NAMES, parse_location};
pub use resolve::{
    BaseImage, BaseRepository, NoMatchingBase, RejectedTag, Resolution, ResolveError, resolve,
    warning,
};
