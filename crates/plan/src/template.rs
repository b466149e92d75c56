//! The lab that `weir new` writes.

/// A commented lab that loads as it is and runs in seconds.
pub fn template() -> String {
    include_str!("template.toml").into()
}
