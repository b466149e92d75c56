//! Whatever the other host of a transfer sends is a message that reads back to itself, or an error; accepted names of files
//! stay in their folder.

use weir_circuit::transfer::{Message, check_name, part_name};

/// Reads bytes as a message.
pub(crate) fn check(data: &[u8]) {
    let Ok(message) = Message::decode(data) else { return };
    let bytes = message.encode().expect("what was read fits a frame");
    assert_eq!(Message::decode(&bytes).expect("what was written is read"), message);
    if let Message::Offer { name, .. } = &message
        && check_name(name).is_ok()
    {
        let mut parts = std::path::Path::new(name).components();
        let only = |part| matches!(part, Some(std::path::Component::Normal(it)) if it == name.as_str());
        assert!(only(parts.next()) && parts.next().is_none(), "{name:?}");
        assert!(part_name(name).len() <= 255);
    }
}
