//! HTTP: a client at the receiving host opens a connection and requests one resource, the server at the sending host answers, and
//! the client closes when it has read the whole answer (HTTP/1.1, RFC 9112). On real sockets request and answer have real HTTP
//! headers; the content is zeros. The completion time is from opening to the end of the stream.

use crate::checks;
use crate::{Action, Bytes, Event, Parameters, Random, Role, Span, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::ParameterError;

/// Parameters of the fetch of a resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Length of the answer's content, without its header.
    pub size: Bytes,
}

impl Default for Config {
    fn default() -> Config {
        Config { size: Bytes::new(1_000_000) }
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::RequestResponse
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Http { size: self.size })
    }
    fn faults(&self, _: Bytes) -> Vec<ParameterError> {
        checks::size("size", "a resource", self.size).into_iter().collect()
    }
    fn wanted(&self, _: Span) -> Option<Bytes> {
        Some(self.size)
    }
}

#[derive(Debug)]
struct Http {
    size: Bytes,
}

impl Workload for Http {
    fn next(&mut self, event: Event, _: Time) -> Action {
        match event {
            Event::Start => Action::Open,
            Event::Opened => {
                let [request, header] = self.heads().map(|head| Bytes::new(head.len() as u64));
                Action::Exchange { request, response: header + self.size }
            }
            _ => Action::Close,
        }
    }

    fn heads(&self) -> [String; 2] {
        let size = self.size.get();
        [
            format!("GET /{size} HTTP/1.1\r\nHost: weir\r\n\r\n"),
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n"
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_sends_one_request_and_closes() {
        let mut http = Http { size: Bytes::new(5000) };
        let [request, header] = http.heads();
        assert_eq!((request.len(), header.len()), (34, 81));
        assert_eq!(http.next(Event::Start, Time::ZERO), Action::Open);
        let exchange = Action::Exchange { request: Bytes::new(34), response: Bytes::new(5081) };
        assert_eq!(http.next(Event::Opened, Time::ZERO), exchange);
        assert_eq!(http.next(Event::Answered, Time::ZERO), Action::Close);
    }
}
