//! Requests: a client at the receiving host opens a connection and sends requests repeatedly, with think times in between; the
//! server at the sending host answers each request when it has read all of it. The next request waits for the answer (a closed
//! loop). A request's time is from the client's write of the first byte to its read of the answer's last byte; the handshake is not
//! included.

use crate::checks;
use crate::sizes::Drawer;
use crate::{Action, Bytes, Event, Parameters, Random, Role, Sizes, Span, Time, Times, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_base::ParameterError;

/// Parameters of requests and their answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Length of a request: a size, a Pareto distribution or a list, as in `web`.
    pub request: Sizes,
    /// Length of an answer: a size, a Pareto distribution or a list, as in `web`.
    pub response: Sizes,
    /// Mean think time between an answer and the client's next request.
    pub think: Span,
    /// Distribution of the think times: `fixed` or `exponential`.
    pub think_times: Times,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            request: Sizes::Fixed(Bytes::new(400)),
            response: Sizes::Fixed(Bytes::new(30_000)),
            think: Span::from_millis(500),
            think_times: Times::Exponential,
        }
    }
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::RequestResponse
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, random: Random) -> Box<dyn Workload> {
        Box::new(Requests {
            request: self.request.drawer(),
            response: self.response.drawer(),
            think: self.think,
            think_times: self.think_times,
            random,
        })
    }
    fn faults(&self, _: Bytes) -> Vec<ParameterError> {
        let mut faults = self.request.faults("request", "a request");
        faults.extend(self.response.faults("response", "a response"));
        faults.extend(checks::span("think", "a think time", self.think, Span::ZERO));
        faults
    }
    fn wanted(&self, time: Span) -> Option<Bytes> {
        // At most one answer for each think time.
        let answers = time.as_secs_f64() / self.think.as_secs_f64();
        answers.is_finite().then(|| Bytes::new((answers * self.response.mean()) as u64))
    }
}

#[derive(Debug)]
struct Requests {
    request: Drawer,
    response: Drawer,
    think: Span,
    think_times: Times,
    random: Random,
}

impl Workload for Requests {
    fn next(&mut self, event: Event, now: Time) -> Action {
        match event {
            Event::Start => Action::Open,
            Event::Answered if !self.think.is_zero() => {
                Action::WaitUntil(now + self.think_times.draw(self.think, &mut self.random))
            }
            _ => Action::Exchange {
                request: self.request.draw(&mut self.random),
                response: self.response.draw(&mut self.random),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::UDP_HEADERS;

    #[test]
    fn a_client_sends_a_request_thinks_and_sends_the_next() {
        let config = Config { think: Span::from_millis(20), think_times: Times::Fixed, ..Config::default() };
        let mut requests = config.build(None, UDP_HEADERS, Random::stream(1, "test"));
        let exchange = Action::Exchange { request: Bytes::new(400), response: Bytes::new(30_000) };
        let later = Time::ZERO + Span::from_millis(70);
        assert_eq!(requests.next(Event::Start, Time::ZERO), Action::Open);
        assert_eq!(requests.next(Event::Opened, Time::ZERO), exchange);
        assert_eq!(requests.next(Event::Answered, later), Action::WaitUntil(later + Span::from_millis(20)));
        assert_eq!(requests.next(Event::Woken, later), exchange);
    }

    #[test]
    fn a_client_without_think_time_sends_the_next_request_at_once() {
        let mut requests = Config { think: Span::ZERO, ..Config::default() }.build(
            None,
            UDP_HEADERS,
            Random::stream(1, "test"),
        );
        assert!(matches!(requests.next(Event::Answered, Time::ZERO), Action::Exchange { .. }));
    }
}
