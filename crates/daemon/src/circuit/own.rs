//! A circuit that `weir circuit send` plans and sets up for one transfer, and takes down after it.

use super::args::{Asked, OwnArgs};
use super::asked::{asked, now};
use super::entry::{Up, wanted};
use super::host::Host;
use super::late::late;
use super::up::{set_up, tell};
use crate::failure::Failure;
use crate::output::say;
use std::net::IpAddr;
use std::path::PathBuf;
use weir_base::Span;
use weir_circuit::Store;
use weir_shaper::Device;

/// How long it is reserved: if this process is killed, the next command takes it down after that time.
const LASTS: Span = Span::from_secs(24 * 3600);

/// A circuit that is up for a transfer.
pub(crate) struct Own {
    number: u64,
    store: PathBuf,
}

impl Own {
    /// Reserves the requested circuit to a host and sets it up; `None` if none is requested. Unless it is `controlled`, only a
    /// shaper is set up.
    ///
    /// # Errors
    /// As `weir circuit up`.
    pub(crate) fn begin(
        args: &OwnArgs,
        host: IpAddr,
        streams: u32,
        controlled: bool,
    ) -> Result<Option<Own>, Failure> {
        let (Some(rate), Some(rtt), Some(device)) = (args.rate, args.rtt, &args.device) else {
            return Ok(None);
        };
        let to = host.to_string().parse().map_err(|error| Failure::failed(format!("{host}: {error}")))?;
        let mut shaped = Device::open(device)?;
        let asked_for = Asked {
            to,
            device: device.clone(),
            rate,
            rtt,
            from: None,
            lasts: Some(LASTS),
            until: None,
            semi: false,
            card: args.card,
            background: None,
        };
        let (circuit, card) = asked(&asked_for, now())?;
        let (mtu, _) = shaped.sizes()?;
        let store = &args.store.store;
        let up = Up {
            streams,
            controlled,
            late_ns: late(args.late).as_nanos(),
            ..wanted(0, store, &circuit, mtu)
        };
        let plan = up.plan()?;
        let up = set_up(&mut shaped, up, &circuit, Some(&card), false)?;
        say(&format!(
            "weir: circuit {} to {host} is up: {rate}, window {}, bucket {}, at most {} of payload",
            up.number,
            plan.window,
            plan.burst,
            plan.told_ceiling(),
        ));
        Ok(Some(Own { number: up.number, store: store.clone() }))
    }

    /// Takes the circuit down and cancels its reservation.
    ///
    /// # Errors
    /// As `weir circuit down` and `cancel`.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let (mut host, notes) = Host::lock()?;
        tell(&notes);
        tell(&host.lower(&[(self.number, self.store.clone())])?);
        drop(host);
        Store::open_existing(&self.store)?.cancel(&[self.number], now())?;
        Ok(())
    }
}
