//! A path with a delay between two sites: each site is a row of its own with an aggregation point, and what reaches a row's far
//! end leaves the other row's far end later. A datagram of the path may be lost; each one that arrives at it is logged.

use super::row::*;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Delay of each direction.
pub(crate) const DELAY: Duration = Duration::from_millis(25);
/// The round trip of the path.
pub(crate) const RTT: Duration = Duration::from_millis(50);

/// One direction.
#[derive(Default)]
pub(crate) struct Direction {
    /// When each datagram came to it.
    came: Mutex<Vec<Instant>>,
    lost: AtomicU64,
}

impl Direction {
    /// Datagrams that have come to it.
    pub(crate) fn count(&self) -> usize {
        self.came.lock().unwrap().len()
    }

    /// Datagrams that came to it in this time.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> usize {
        self.came.lock().unwrap().iter().filter(|at| (from..to).contains(at)).count()
    }

    /// Datagrams that it has lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Two sites and the path between them.
pub(crate) struct Path {
    /// The site whose endpoint is at `LEFT`, and the one whose endpoint is at `RIGHT`; the aggregation point is in namespace 1.
    pub(crate) west: Row,
    pub(crate) east: Row,
    /// From the west and from the east.
    pub(crate) directions: [Arc<Direction>; 2],
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Path {
    /// A path that loses every `lost`-th datagram of each direction; `None` if it cannot be made.
    pub(crate) fn new(lost: Option<u64>) -> Option<Path> {
        let (west, east) = (Row::new(1)?, Row::new(1)?);
        let (near, far) = (west.right(|| socket(RIGHT, PORT)), east.left(|| socket(LEFT, PORT)));
        let (ends, mut threads) = (Arc::new(AtomicBool::new(false)), vec![]);
        let mut carry = |from: &UdpSocket, to: &UdpSocket, address: Ipv4Addr| {
            let direction = Arc::new(Direction::default());
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let (under_way, due) = mpsc::channel::<(Instant, Vec<u8>)>();
            threads.push(std::thread::spawn(move || {
                for (at, datagram) in due {
                    std::thread::sleep(at.saturating_duration_since(Instant::now()));
                    // An aggregation point that does not run is no error of the path.
                    let _ = to.send_to(&datagram, (address, PORT));
                }
            }));
            let (log, ends) = (Arc::clone(&direction), Arc::clone(&ends));
            threads.push(std::thread::spawn(move || {
                let mut datagram = [0; 2048];
                from.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                while !ends.load(Ordering::Relaxed) {
                    let Ok(length) = from.recv(&mut datagram) else { continue };
                    let now = Instant::now();
                    let mut came = log.came.lock().unwrap();
                    came.push(now);
                    // Neither the first ones, which open a connection, nor two in a row.
                    if lost.is_some_and(|lost| (came.len() as u64 + lost / 2).is_multiple_of(lost)) {
                        log.lost.fetch_add(1, Ordering::Relaxed);
                    } else {
                        under_way.send((now + DELAY, datagram[..length].to_vec())).unwrap();
                    }
                }
            }));
            direction
        };
        let directions = [carry(&near, &far, RIGHT), carry(&far, &near, LEFT)];
        Some(Path { west, east, directions, ends, threads })
    }

    /// Starts a site's aggregation point, and waits until it works.
    pub(crate) fn start(&self, site: Site) -> Running {
        match site {
            Site::West => self.west.start(1, METRICS),
            Site::East => self.east.start_between(1, ["b", "a"], [RIGHT, LEFT], METRICS),
        }
    }

    pub(crate) fn row(&self, site: Site) -> &Row {
        match site {
            Site::West => &self.west,
            Site::East => &self.east,
        }
    }

    /// A measurement of application 1 at a site's aggregation point, asked without a process of its own.
    pub(crate) fn measured(&self, site: Site, names: &[&str]) -> Vec<f64> {
        let text = self.row(site).at(1, || get("/metrics"));
        let value = |name: &&str| {
            let of = |line: &&str| {
                line.starts_with(&format!("weir_ap_application_{name}{{")) && line.contains("id=\"1\"")
            };
            text.lines()
                .find(of)
                .unwrap_or_else(|| panic!("{name}: {text}"))
                .rsplit(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        names.iter().map(value).collect()
    }

    /// Replaces both aggregation points, which do not run, by wires, or takes the wires away.
    pub(crate) fn bypass(&self, wired: bool) {
        for row in [&self.west, &self.east] {
            row.at(1, || {
                if !wired {
                    return run("ip link delete bypass");
                }
                run("ip link add name bypass type bridge");
                run("ip link set dev bypass up");
                ["a", "b"].iter().for_each(|device| run(&format!("ip link set dev {device} master bypass")));
            });
        }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// One of the two sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Site {
    West,
    East,
}

const METRICS: &str = "--metrics 127.0.0.1:9100";
