//! What `weir overlay check` says of a file.

use super::{Neighbour, Plan};
use std::fmt;
use weir_base::Span;
use weir_overlay::site::{Service, quota};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "node {:?} (number {}), listening on {}", self.name, self.id.number(), self.listen)?;
        writeln!(f, "device {} with an MTU of {} bytes, routes:", self.device, self.device_mtu.get())?;
        for (prefix, node) in self.prefixes.iter().filter(|(_, node)| *node != self.id) {
            writeln!(f, "  {prefix}  behind {}", self.name_of(*node))?;
        }
        let tcp = if self.proxies { "over proxies of both sites" } else { "carried as all else" };
        for prefix in &self.groups.prefixes {
            writeln!(f, "  {prefix}  groups")?;
        }
        for device in &self.groups.devices {
            writeln!(f, "  hosts at {device} send to groups and join them")?;
        }
        writeln!(f, "TCP connections: {tcp}")?;
        writeln!(f, "neighbours:")?;
        for Neighbour { name, asks, quota, .. } in &self.neighbours {
            match asks {
                Some(at) => write!(f, "  {name}  at {at}")?,
                None => write!(f, "  {name}  asks this node")?,
            }
            if let Some(quota::Config { rate, packets, queue }) = quota {
                rate.map_or(Ok(()), |rate| write!(f, ", {rate} at most"))?;
                packets.map_or(Ok(()), |packets| write!(f, ", {packets} packets a second at most"))?;
                queue.map_or(Ok(()), |queue| write!(f, ", {} bytes held at most", queue.get()))?;
            }
            writeln!(f)?;
        }
        if !self.services.is_empty() {
            writeln!(f, "services, the first that fits a flow is the flow's:")?;
        }
        for Service { name, admit, deadline, ef_deadline, chunk, fec, reorder, join, smooth, .. } in
            &self.services
        {
            let utility = admit.as_ref().map_or("log", |admit| admit.name());
            let within = |what: &str, deadline: &Option<Span>| {
                deadline.map(|deadline| format!(", {what}within {deadline}")).unwrap_or_default()
            };
            let (deadline, ef) = (within("", deadline), within("EF ", ef_deadline));
            write!(f, "  {name}  by {utility}{deadline}{ef}")?;
            chunk.map_or(Ok(()), |chunk| write!(f, ", in parts of {chunk}"))?;
            fec.map_or(Ok(()), |fec| write!(f, ", {} repairs for {} parts", fec.total - fec.base, fec.base))?;
            join.map_or(Ok(()), |time| write!(f, ", short ones joined within {time}"))?;
            reorder.map_or(Ok(()), |time| write!(f, ", in order within {time}"))?;
            if *smooth {
                write!(f, ", with the spacing that they had")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
