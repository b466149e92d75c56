//! The exact depth, the study's default (digest A 6.9, Base).

/// Parameters of `exact`: it has none.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {}
