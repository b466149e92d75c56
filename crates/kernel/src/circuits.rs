//! The circuits of Circuit TCP in the running kernel: each destination has its own, found by the longest prefix that contains
//! it. A transfer follows a change within about a second; if its circuit is removed, it continues under H-TCP.

use crate::running::{is_registered, map_of};
use crate::{CIRCUITS, Circuit, Control, Problem, control};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use weir_base::{Rate, Span};
use weir_control::Config;
/// Bits of an IPv6 address, and the bits before an IPv4 address that is mapped into it (RFC 4291, section 2.5.5.2).
const WHOLE: u8 = 128;
const MAPPED: u8 = 96;
/// Lengths of `struct prefix` (`bpf/types.h`) and of `struct circuit` (`bpf/ctcp.c`).
const KEY: usize = 20;
const VALUE: usize = 24;

fn ctcp() -> Result<&'static Control, Problem> {
    control("ctcp").ok_or_else(|| Problem::Unknown("ctcp".to_owned()))
}

fn circuits_map() -> Result<MapHandle, Problem> {
    let ctcp = ctcp()?;
    // After an unload, the programs and circuits of its last connections are still in the kernel.
    if !is_registered(ctcp) {
        return Err(Problem::NotLoaded(ctcp.kernel));
    }
    Ok(map_of(ctcp, CIRCUITS)?.1)
}

fn failed(error: libbpf_rs::Error) -> Problem {
    Problem::failed("cannot reach the circuits of weir_ctcp")(io::Error::other(error))
}

/// Gives a destination a circuit, or changes its circuit's rate, round trip or window.
///
/// # Errors
/// Circuit TCP is not loaded, or the configuration is that of another controller.
pub fn set_circuit(circuit: &Circuit) -> Result<(), Problem> {
    let value =
        value_of(&circuit.config).ok_or_else(|| Problem::Unknown(circuit.config.name().to_owned()))?;
    let key = key_of(circuit.address, circuit.length);
    circuits_map()?.update(&key, &value, MapFlags::ANY).map_err(failed)
}

/// Removes the circuit of a destination; returns whether there was one.
///
/// # Errors
/// Circuit TCP is not loaded.
pub fn remove_circuit(address: IpAddr, length: u8) -> Result<bool, Problem> {
    match circuits_map()?.delete(&key_of(address, length)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// All circuits that are in the kernel.
///
/// # Errors
/// Circuit TCP is not loaded.
pub fn circuits() -> Result<Vec<Circuit>, Problem> {
    let map = circuits_map()?;
    let mut all = vec![];
    for key in map.keys() {
        // A circuit that was removed meanwhile is left out.
        if let Some(value) = map.lookup(&key, MapFlags::ANY).map_err(failed)? {
            all.extend(circuit_of(&key, &value));
        }
    }
    Ok(all)
}

/// A prefix as the map's key: its length in bits, and the address as an IPv6 address.
fn key_of(address: IpAddr, length: u8) -> [u8; KEY] {
    let (address, bits) = match address {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped(), MAPPED.saturating_add(length)),
        IpAddr::V6(v6) => (v6, length),
    };
    let mut key = [0; KEY];
    key[..4].copy_from_slice(&u32::from(bits.min(WHOLE)).to_ne_bytes());
    key[4..].copy_from_slice(&address.octets());
    key
}

/// A circuit as the map's value; `None` if the configuration is that of another controller.
fn value_of(config: &Config) -> Option<[u8; VALUE]> {
    let Config::Ctcp(config) = config else { return None };
    let mut value = [0; VALUE];
    value[..8].copy_from_slice(&config.rate.bits_per_sec().to_ne_bytes());
    let numbers =
        [config.rtt.as_micros() as u32, config.window_percent, config.header_bytes, u32::from(config.pace)];
    for (place, number) in value[8..].chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    Some(value)
}

fn circuit_of(key: &[u8], value: &[u8]) -> Option<Circuit> {
    let number = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let octets: [u8; 16] = key.get(4..KEY)?.try_into().ok()?;
    let bits = u8::try_from(number(key, 0)?).ok()?;
    let address = Ipv6Addr::from(octets);
    let (address, length) = match address.to_ipv4_mapped() {
        Some(v4) if bits >= MAPPED => (IpAddr::V4(v4), bits - MAPPED),
        _ => (IpAddr::V6(address), bits),
    };
    let mut config: Config = "ctcp".parse().ok()?;
    if let Config::Ctcp(config) = &mut config {
        config.rate = Rate::from_bits_per_sec(u64::from_ne_bytes(value.get(..8)?.try_into().ok()?));
        config.rtt = Span::from_micros(number(value, 8)?.into());
        config.window_percent = number(value, 12)?;
        config.header_bytes = number(value, 16)?;
        config.pace = number(value, 20)? != 0;
    }
    Some(Circuit { address, length, config })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circuits_are_read_as_they_are_written() {
        let json = r#"{ "kind": "ctcp", "rate": "100 Gbit/s", "rtt": "26 ms", "window_percent": 120, "pace": true }"#;
        let config: Config = serde_json::from_str(json).unwrap();
        for (address, length) in
            [("10.1.0.0", 16), ("10.1.2.3", 32), ("0.0.0.0", 0), ("2001:db8::", 32), ("::", 0)]
        {
            let circuit = Circuit { address: address.parse().unwrap(), length, config: config.clone() };
            let (key, value) = (key_of(circuit.address, length), value_of(&config).unwrap());
            assert_eq!(circuit_of(&key, &value), Some(circuit));
        }
        assert_eq!(value_of(&"htcp".parse().unwrap()), None);
    }
}
