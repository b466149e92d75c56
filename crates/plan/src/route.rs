//! The paths of groups through the lab's own network: by least delay, over the places that a group asks for.

use crate::diagnostic::suggest;
use crate::each::Places;
use crate::limits::LARGEST_MTU;
use crate::per_direction::Direction;
use crate::reader::Reader;
use crate::run::Station;
use crate::traffic::Traffic;
use weir_base::{Bytes, Rate, Span};
use weir_fabric::{Edge, Link, least_delay};

/// What kind of network a lab has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One link; nothing to choose.
    Dumbbell,
    /// Links in a row; groups enter and leave where they say, or pass the whole.
    Row,
    /// Links around a hub; groups say from where to where.
    Star,
    /// Anything; groups say from where to where, and may say over which way.
    Graph,
}

/// A node of the lab's own network, where groups begin and end.
#[derive(Debug, Clone)]
pub(crate) struct LabNode {
    pub(crate) name: String,
    /// Whether it is a host, which forwards nothing.
    pub(crate) host: bool,
}

impl LabNode {
    pub(crate) fn router(name: impl Into<String>) -> LabNode {
        LabNode { name: name.into(), host: false }
    }
}

/// The network in which the paths of groups are found.
pub(crate) struct Routes {
    shape: Shape,
    places: Vec<LabNode>,
    hops: Vec<Hop>,
}

/// One direction of a link.
struct Hop {
    name: String,
    from: usize,
    to: usize,
    rate: Option<Rate>,
    delay: Span,
    overhead: Bytes,
    mtu: Bytes,
}

/// The path of a group's data, and the path back.
pub(crate) struct Route {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Base RTT between its ends.
    pub(crate) rtt: Span,
    /// Time that the slowest link on the path needs for a packet of its MTU.
    pub(crate) serialisation: Span,
    /// Indices of the links on the path.
    pub(crate) links: Vec<usize>,
    /// Indices of the links on the path back.
    pub(crate) back: Vec<usize>,
    /// Whether other paths may exist, so that this one must be spelled out.
    pub(crate) given: bool,
    /// Whether it ends at a station, which answers itself.
    pub(crate) to_station: bool,
    /// Largest IP packet that all its links carry, there and back.
    pub(crate) mtu: Bytes,
}

/// The length of a path: delay in nanoseconds, then links.
type Length = (u64, u32);

/// The first part of a path, and its length.
#[derive(Clone)]
struct Partial {
    length: Length,
    links: Vec<usize>,
    end: usize,
}

/// Why a path cannot be found.
enum NoRoute {
    /// No link or node has this name.
    Unknown(String),
    /// No links lead there.
    Between(usize, usize),
    /// A node is passed twice.
    Circle(usize),
    /// A host is passed.
    Through(usize),
}

impl Routes {
    /// Paths through these links between these places. Links refer to places by index.
    pub(crate) fn new(shape: Shape, places: Vec<LabNode>, links: &[Link]) -> Routes {
        let hop = |link: &Link| Hop {
            name: link.name.clone(),
            from: link.from,
            to: link.to,
            rate: link.rate,
            delay: link.delay,
            overhead: link.overhead,
            mtu: link.mtu,
        };
        Routes { shape, places, hops: links.iter().map(hop).collect() }
    }

    /// The paths of a group's data: one to each place that `to` names, or one to the default place.
    pub(crate) fn find_all(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        traffic: &Traffic,
        stations: &[Station],
    ) -> Option<Vec<Route>> {
        let Some(Places(names)) = &traffic.to else {
            return Some(vec![self.find(reader, name, traffic, None, stations)?]);
        };
        if names.len() > 1 && traffic.direction == Direction::Up {
            let message = "with direction = \"up\" the data comes from `to`, which must be one place";
            reader.wrong(
                &["traffic", name, "direction"],
                message,
                "name one place in `to`, or remove direction",
            );
            return None;
        }
        names.iter().map(|to| self.find(reader, name, traffic, Some(to), stations)).collect()
    }

    /// The path of a group's data through the lab's links, and the path back.
    fn find(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        traffic: &Traffic,
        to: Option<&String>,
        stations: &[Station],
    ) -> Option<Route> {
        if self.shape != Shape::Graph {
            for key in ["via", "back"] {
                if reader.has(&["traffic", name, key]) {
                    let help = "remove it, or spell the network out as a [graph]";
                    reader.wrong(&["traffic", name, key], "only a graph has more than one path", help);
                }
            }
        }
        let station = to.and_then(|to| stations.iter().find(|station| station.name == *to));
        if let Some(station) = station.filter(|station| !station.station.answers()) {
            let message =
                format!("the station `{}` does not answer packets that are sent to it", station.name);
            reader.wrong(
                &["traffic", name, "to"],
                message,
                "name a station of kind = \"echo\", a router or a host",
            );
            return None;
        }
        let (from, to) = match station {
            // Requests go to the station, whichever way that is.
            Some(station) => (self.ends(reader, name, traffic, None, Some(station.at))?.0, station.at),
            None => {
                let (from, to) = self.ends(reader, name, traffic, to, None)?;
                if traffic.direction == Direction::Down { (from, to) } else { (to, from) }
            }
        };
        if from == to {
            let key = if traffic.to.is_some() { "to" } else { "from" };
            let help = suggest("", self.places.iter().map(|place| place.name.as_str()));
            reader.wrong(
                &["traffic", name, key],
                "the data enters and leaves at the same router, and passes no link",
                help,
            );
            return None;
        }
        let via = traffic.via.clone().unwrap_or_default();
        let back = match &traffic.back {
            Some(back) => back.clone(),
            None => via.iter().rev().filter(|stop| !self.leads_one_way(stop)).cloned().collect(),
        };
        let (links, back) = (self.way(from, to, &via), self.way(to, from, &back));
        let mut tell = |way: Result<Vec<usize>, NoRoute>, key: &'static str| match way {
            Ok(links) => Some(links),
            Err(why) => {
                self.refuse(reader, name, key, why);
                None
            }
        };
        let (links, back) = (tell(links, "via")?, tell(back, "back")?);
        let delay = |links: &[usize]| links.iter().fold(Span::ZERO, |sum, &link| sum + self.hops[link].delay);
        let time = |&link: &usize| {
            let hop = &self.hops[link];
            hop.rate.map_or(Span::ZERO, |rate| rate.time_to_send(hop.mtu + hop.overhead))
        };
        let mtu = links.iter().chain(&back).map(|&link| self.hops[link].mtu).fold(LARGEST_MTU, Bytes::min);
        Some(Route {
            from,
            to,
            rtt: delay(&links) + delay(&back),
            serialisation: links.iter().map(time).max().unwrap_or(Span::ZERO),
            links,
            back,
            given: self.shape == Shape::Graph,
            to_station: station.is_some(),
            mtu,
        })
    }

    /// The places where a group's data enters and leaves, before its direction is applied.
    fn ends(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        traffic: &Traffic,
        to: Option<&String>,
        station: Option<usize>,
    ) -> Option<(usize, usize)> {
        let at = |key: &'static str| ["traffic", name, key];
        let last = self.places.len() - 1;
        if let Some(hop) = traffic.hop {
            return self.hop(reader, name, traffic, hop);
        }
        let mut end = |key: &'static str, named: Option<&String>, default: usize| match named {
            Some(_) if self.shape == Shape::Dumbbell => {
                let help = "remove it, or spell the network out as a [chain]; direction = \"up\" reverses the data's direction";
                reader.wrong(&at(key), "only a chain has routers to choose from", help);
                None
            }
            Some(router) => {
                let found = self.places.iter().position(|place| place.name == *router);
                if found.is_none() {
                    let help = suggest(router, self.places.iter().map(|place| place.name.as_str()));
                    let what = if self.shape == Shape::Graph { "node" } else { "router" };
                    reader.wrong(&at(key), format!("there is no {what} `{router}` to reach"), help);
                }
                found
            }
            None if matches!(self.shape, Shape::Star | Shape::Graph) => {
                let names: Vec<&str> = self.places.iter().map(|place| place.name.as_str()).collect();
                let place = names.get(default).copied().unwrap_or("a");
                let does = if key == "from" { "enters" } else { "leaves" };
                let message = format!("the group `{name}` does not say where its data {does} the network");
                let help = format!("add {key} = \"{place}\"; {}", suggest("", names.iter().copied()));
                reader.wrong(&["traffic", name], message, help);
                None
            }
            None => Some(default),
        };
        let first = if station.is_some() && traffic.direction == Direction::Up { last } else { 0 };
        let from = end("from", traffic.from.as_ref(), first);
        let to = match station {
            Some(station) => Some(station),
            None => end("to", to, last),
        };
        from.zip(to)
    }

    /// The ends of one link of a row.
    fn hop(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        traffic: &Traffic,
        hop: u64,
    ) -> Option<(usize, usize)> {
        let at = |key: &'static str| ["traffic", name, key];
        if self.shape != Shape::Row {
            let help = "remove it; in a star or graph, from and to give the data's path";
            reader.wrong(&at("hop"), "only a parking lot or a chain has hops", help);
            return None;
        }
        if traffic.from.is_some() || traffic.to.is_some() {
            let key = if traffic.from.is_some() { "from" } else { "to" };
            reader.wrong(&at(key), "`hop` already gives the data's path", "remove one of the two");
            return None;
        }
        let count = self.places.len() - 1;
        match usize::try_from(hop) {
            Ok(hop) if (1..=count).contains(&hop) => Some((hop - 1, hop)),
            _ => {
                let help = format!("write a number from 1 to {count}");
                reader.wrong(&at("hop"), format!("there is no hop {hop}"), help);
                None
            }
        }
    }

    /// Reports why a group has no path.
    fn refuse(&self, reader: &mut Reader<'_>, name: &str, key: &'static str, why: NoRoute) {
        let written = ["traffic", name, key];
        let via = ["traffic", name, "via"];
        let group = ["traffic", name];
        // Without `back`, the path back follows from `via`, and without that from the network alone.
        let path = match () {
            () if reader.has(&written) => &written[..],
            () if reader.has(&via) => &via[..],
            () => &group[..],
        };
        let place = |node: usize| self.places[node].name.as_str();
        let (message, help) = match why {
            NoRoute::Unknown(stop) => {
                let names = self.hops.iter().map(|hop| &hop.name).chain(self.places.iter().map(|place| &place.name));
                let names: Vec<&str> = names.map(String::as_str).collect();
                (format!("there is no link or node `{stop}` to pass"), suggest(&stop, names.iter().copied()))
            }
            NoRoute::Between(from, to) => (
                format!("no path leads from `{}` to `{}`", place(from), place(to)),
                "add a link; links with one_way lead from `from` to `to` only, and hosts forward nothing".into(),
            ),
            NoRoute::Circle(node) => (
                format!("the path would pass `{}` twice", place(node)),
                "name links and nodes in the order in which the packets pass them; NAME-up is a link's other direction".into(),
            ),
            NoRoute::Through(node) => (
                format!("the path would lead through the host `{}`, which forwards nothing", place(node)),
                "remove it from the path, or list it among the routers".into(),
            ),
        };
        reader.wrong(path, message, help);
    }

    /// Whether this names a link with one direction only.
    fn leads_one_way(&self, name: &str) -> bool {
        let other = format!("{name}-up");
        let has = |name: &str| self.hops.iter().any(|hop| hop.name == name);
        has(name) && !has(&other) && !name.strip_suffix("-up").is_some_and(has)
    }

    /// The shortest path over these stops.
    fn way(&self, from: usize, to: usize, stops: &[String]) -> Result<Vec<usize>, NoRoute> {
        let mut ways: Vec<Partial> = vec![Partial { length: (0, 0), links: Vec::new(), end: from }];
        let mut missing = NoRoute::Between(from, to);
        for stop in stops {
            let steps = self.steps(stop);
            if steps.is_empty() {
                return Err(NoRoute::Unknown(stop.clone()));
            }
            let mut next = Vec::new();
            for way in &ways {
                for &(end, link) in &steps {
                    match self.extended(way, end) {
                        Some(reached) => next.push(self.over(reached, link)),
                        None => missing = NoRoute::Between(way.end, end),
                    }
                }
            }
            // A link's name means either direction, so the paths so far have two ends at most; the shortest to each end is
            // kept.
            next.sort_by_key(|way| (self.flaw(from, to, &way.links).is_some(), way.length));
            ways = Vec::new();
            for way in next {
                if ways.iter().all(|other| other.end != way.end) {
                    ways.push(way);
                }
            }
        }
        let mut whole: Vec<Partial> = Vec::new();
        for way in &ways {
            match self.extended(way, to) {
                Some(way) => whole.push(way),
                None => missing = NoRoute::Between(way.end, to),
            }
        }
        // Sorted by length alone; of equals, the one that was found first stays first.
        whole.sort_by_key(|way| way.length);
        let mut wrong = None;
        for way in whole {
            match self.flaw(from, to, &way.links) {
                None => return Ok(way.links),
                Some(flaw) => wrong = wrong.or(Some(flaw)),
            }
        }
        Err(wrong.unwrap_or(missing))
    }

    /// What a stop may mean: a place to reach, and a link to take from there. A two-way link's name means either direction.
    fn steps(&self, stop: &str) -> Vec<(usize, Option<usize>)> {
        if let Some(place) = self.places.iter().position(|place| place.name == stop) {
            return vec![(place, None)];
        }
        let up = format!("{stop}-up");
        let links = self.hops.iter().enumerate().filter(|(_, hop)| hop.name == stop || hop.name == up);
        links.map(|(link, hop)| (hop.from, Some(link))).collect()
    }

    /// A path and one more link, if one is given.
    fn over(&self, mut way: Partial, link: Option<usize>) -> Partial {
        if let Some(link) = link {
            let hop = &self.hops[link];
            way.length = (way.length.0.saturating_add(hop.delay.as_nanos()), way.length.1 + 1);
            way.links.push(link);
            way.end = hop.to;
        }
        way
    }

    /// A path and the shortest one from its end to this place; `None` if there is none.
    fn extended(&self, way: &Partial, to: usize) -> Option<Partial> {
        let links = self.shortest(way.end, to)?;
        Some(links.into_iter().fold(way.clone(), |way, link| self.over(way, Some(link))))
    }

    /// The links of least delay between two places; of equals, those with fewer links, then those named first. Hosts are not passed
    /// through.
    fn shortest(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut leaving: Vec<Vec<Edge>> = vec![Vec::new(); self.places.len()];
        for (link, hop) in (0..).zip(&self.hops) {
            leaving[hop.from].push(Edge { link, to: hop.to, delay: hop.delay });
        }
        let reached_by = least_delay(from, &leaving, |node| self.places[node].host);
        let mut links = Vec::new();
        let mut node = to;
        while node != from {
            let link = reached_by[node]? as usize;
            links.push(link);
            node = self.hops[link].from;
        }
        links.reverse();
        Some(links)
    }

    /// The flaw of a path: a place that it passes twice, or a host that it passes. `None` if it has none.
    fn flaw(&self, from: usize, to: usize, links: &[usize]) -> Option<NoRoute> {
        let mut passed = vec![false; self.places.len()];
        passed[from] = true;
        for &link in links {
            let node = self.hops[link].to;
            if std::mem::replace(&mut passed[node], true) {
                return Some(NoRoute::Circle(node));
            }
            if self.places[node].host && node != to {
                return Some(NoRoute::Through(node));
            }
        }
        None
    }
}
