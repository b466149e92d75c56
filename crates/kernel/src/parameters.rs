//! Parameters of a control in the kernel: the variables of its `.data` section, whose names and types are in the object's type
//! information. An integer is a number, `bool` a boolean, an `enum` one of its names (without the leading underscore of names that
//! C would not allow), `usecs` a time, and `bits_per_sec` a rate.

use crate::{Control, Problem};
use libbpf_rs::btf::types::{DataSec, Enum, EnumMember, Int, IntEncoding, Typedef, Var, VarSecInfo};
use libbpf_rs::btf::{Btf, BtfType, ReferencesType};
use serde_json::{Map, Value};
use weir_base::{Rate, Span};
use weir_control::Config;

/// The type of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Number { signed: bool },
    Truth,
    Time,
    Rate,
    Name(Vec<(String, u32)>),
}

/// A parameter, and its place in the section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    offset: usize,
    size: usize,
    kind: Kind,
}

/// The parameters of an object, from its type information.
pub(crate) fn parameters(btf: &Btf<'_>) -> Vec<Parameter> {
    let Some(section) = btf.type_by_name::<DataSec<'_>>(".data") else { return vec![] };
    let read = |place: VarSecInfo| {
        let variable: Var<'_> = btf.type_by_id(place.ty)?;
        let name = variable.name()?.to_str()?.to_owned();
        let kind = kind_of(variable.referenced_type())?;
        Some(Parameter { name, offset: place.offset as usize, size: place.size, kind })
    };
    section.iter().filter_map(read).collect()
}

fn kind_of(ty: BtfType<'_>) -> Option<Kind> {
    let typedef = Typedef::try_from(ty).ok().and_then(|typedef| typedef.name()?.to_str());
    match typedef {
        Some("usecs") => return Some(Kind::Time),
        Some("bits_per_sec") => return Some(Kind::Rate),
        _ => {}
    }
    let ty = ty.skip_mods_and_typedefs();
    if let Ok(names) = Enum::try_from(ty) {
        let name = |member: EnumMember<'_>| {
            let name = member.name?.to_str()?.trim_start_matches('_');
            Some((name.to_owned(), u32::try_from(member.value).ok()?))
        };
        return Some(Kind::Name(names.iter().filter_map(name).collect()));
    }
    let int = Int::try_from(ty).ok()?;
    match int.encoding {
        IntEncoding::Bool => Some(Kind::Truth),
        IntEncoding::Signed => Some(Kind::Number { signed: true }),
        _ => Some(Kind::Number { signed: false }),
    }
}

impl Parameter {
    /// Writes a value, in the form of a lab file, into its place. `None` if it does not fit.
    pub(crate) fn write(&self, value: &Value, section: &mut [u8]) -> Option<()> {
        let number: i64 = match &self.kind {
            Kind::Number { signed: true } => i32::try_from(value.as_i64()?).ok()?.into(),
            Kind::Number { signed: false } => u32::try_from(value.as_u64()?).ok()?.into(),
            Kind::Truth => value.as_bool()?.into(),
            Kind::Time => u32::try_from(value.as_str()?.parse::<Span>().ok()?.as_micros()).ok()?.into(),
            Kind::Rate => i64::try_from(value.as_str()?.parse::<Rate>().ok()?.bits_per_sec()).ok()?,
            Kind::Name(names) => names.iter().find(|(name, _)| value.as_str() == Some(name))?.1.into(),
        };
        let place = section.get_mut(self.offset..self.offset + self.size)?;
        match self.size {
            1 => place.copy_from_slice(&(number as u8).to_ne_bytes()),
            4 => place.copy_from_slice(&(number as u32).to_ne_bytes()),
            8 => place.copy_from_slice(&number.to_ne_bytes()),
            _ => return None,
        }
        Some(())
    }

    /// Reads the value, in the form of a lab file.
    pub(crate) fn read(&self, section: &[u8]) -> Value {
        let place = section.get(self.offset..self.offset + self.size).unwrap_or_default();
        let number = match *place {
            [byte] => u32::from(byte),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]),
            _ => 0,
        };
        match &self.kind {
            Kind::Number { signed: true } => number.cast_signed().into(),
            Kind::Number { signed: false } => number.into(),
            Kind::Truth => (number != 0).into(),
            Kind::Time => Span::from_micros(number.into()).to_string().into(),
            Kind::Rate => {
                let bits = place.try_into().map_or(0, u64::from_ne_bytes);
                Rate::from_bits_per_sec(bits).to_string().into()
            }
            Kind::Name(names) => names
                .iter()
                .find(|(_, value)| *value == number)
                .map_or_else(|| number.into(), |(name, _)| name.clone().into()),
        }
    }
}

/// All of a controller's parameters, in the form of a lab file.
pub(crate) fn spelled_out(config: &Config) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(mut all)) => {
            all.remove("kind");
            all
        }
        _ => Map::new(),
    }
}

/// Writes all parameters of a controller into a section.
///
/// # Errors
/// [`Problem::Parameter`]: the kernel form lacks one that is not at its default, or its type is too small.
pub(crate) fn write_all(
    control: &Control,
    config: &Config,
    parameters: &[Parameter],
    section: &mut [u8],
) -> Result<(), Problem> {
    let defaults = control.name.parse().map(|config: Config| spelled_out(&config)).unwrap_or_default();
    for (name, value) in spelled_out(config) {
        let written = match parameters.iter().find(|parameter| parameter.name == name) {
            Some(parameter) => parameter.write(&value, section).is_some(),
            None => defaults.get(&name) == Some(&value),
        };
        if !written {
            let value = value.to_string();
            return Err(Problem::Parameter { control: control.name, parameter: name, value });
        }
    }
    Ok(())
}
