//! No virtual depth: the depth is that of the packets (digest G 2.1).

/// Parameters of `none`: it has none.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}
