//! How algorithms and engines are named in text.

/// An algorithm's name as its registry spells it in text; a name in no registry is spelled as in the lab file.
pub fn spelled(kind: &str) -> String {
    // Words after the kind (a limit, a parameter) stay as they are.
    let (kind, rest) = kind.split_once(' ').map_or((kind, ""), |(kind, rest)| (kind, rest));
    let name = weir_control::Config::title_of(kind)
        .or_else(|| weir_queue::Config::title_of(kind))
        .or_else(|| weir_transport::Config::title_of(kind))
        .unwrap_or(kind);
    if rest.is_empty() { name.into() } else { format!("{name} {rest}") }
}

/// Name of an engine in a sentence.
pub fn engine_name(engine: &str) -> &str {
    match engine {
        "sim" => "simulator",
        "live" => "live Linux",
        other => other,
    }
}
