//! Groups (multicast): the keys `groups`, `group_key` and `group_devices`.

use super::{File, Reading, named};
use crate::failure::Failure;
use crate::transfer::Keys;
use std::net::IpAddr;
use std::path::Path;
use weir_base::Prefix;

/// The groups that the overlay carries.
#[derive(Default)]
pub(in crate::overlay) struct Groups {
    /// The prefixes of their addresses.
    pub(in crate::overlay) prefixes: Vec<Prefix>,
    /// The key that their members share; `None` without groups.
    pub(in crate::overlay) key: Option<Keys>,
    /// Devices of networks of the site whose hosts send to groups and join them.
    pub(in crate::overlay) devices: Vec<String>,
}

impl Groups {
    /// The groups of a file; `own` is the name of the node's device.
    pub(super) fn of(file: &File, own: &str, reading: &Reading<'_>) -> Result<Groups, Failure> {
        let (groups, key) = match (&file.groups, &file.group_key) {
            (None, None) => {
                return match &file.group_devices {
                    None => Ok(Groups::default()),
                    Some(one) => {
                        let help =
                            "write groups = [\"239.1.0.0/16\"] and group_key, or leave out `group_devices`";
                        Err(reading.wrong(&one.span(), "`group_devices` are for `groups`", help))
                    }
                };
            }
            (Some(groups), Some(key)) => (groups, key),
            (Some(one), None) => {
                let help = "write group_key = \"groups.key\", a file of `weir overlay keygen` that all nodes with members have";
                return Err(reading.wrong(&one.span(), "`groups` need a key that their members share", help));
            }
            (None, Some(one)) => {
                let help = "write groups = [\"239.1.0.0/16\"], or leave out `group_key`";
                return Err(reading.wrong(&one.span(), "`group_key` is for `groups`", help));
            }
        };
        for prefix in groups.get_ref() {
            let is_multicast =
                |address: IpAddr| matches!(address, IpAddr::V4(address) if address.is_multicast());
            // 224.0.0.0/24 is of each link alone (RFC 5771, section 4).
            let is_local = prefix.contains(IpAddr::from([224, 0, 0, 0]))
                || matches!(prefix.address(), IpAddr::V4(address) if address.octets()[..3] == [224, 0, 0]);
            if prefix.length() < 4 || !is_multicast(prefix.address()) || is_local {
                let message = format!("{prefix} has no groups that can be carried");
                let help = "write addresses of 239.0.0.0/8, or others of 224.0.1.0 to 239.255.255.255";
                return Err(reading.wrong(&groups.span(), message, help));
            }
        }
        let path = reading.path.parent().unwrap_or(Path::new("")).join(key.get_ref());
        let key = Some(Keys::of_command(&path, "overlay")?);
        Ok(Groups { prefixes: groups.get_ref().clone(), key, devices: devices(file, own, reading)? })
    }
}

/// The devices of networks.
fn devices(file: &File, own: &str, reading: &Reading<'_>) -> Result<Vec<String>, Failure> {
    let Some(spanned) = &file.group_devices else { return Ok(Vec::new()) };
    let (devices, at) = (spanned.get_ref(), spanned.span());
    if devices.is_empty() {
        let help = "write group_devices = [\"eth1\"], or leave it out";
        return Err(reading.wrong(&at, "`group_devices` names no device", help));
    }
    for (number, device) in devices.iter().enumerate() {
        named(device, &at, reading)?;
        if device == own {
            let help = "programs at the node's own device send to groups and join them anyway";
            return Err(reading.wrong(&at, format!("{device:?} is the node's own device"), help));
        }
        if devices[..number].contains(device) {
            let help = "name each device once";
            return Err(reading.wrong(&at, format!("{device:?} is named twice"), help));
        }
    }
    Ok(devices.clone())
}
