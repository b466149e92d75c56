//! One QUIC stream of zeros by quinn: `serve ADDRESS CERTIFICATE` receives it, `send ADDRESS CERTIFICATE BYTES [PAYLOAD]` sends it and
//! prints what it took as JSON. With a payload all packets have that length and leave one by one, without segmentation offload.

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig, VarInt};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is written at once.
const PIECE: usize = 1 << 16;
const NAME: &str = "beside";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // As one thread drives SLIQ, one drives quinn.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", at, certificate] => runtime.block_on(serve(at.parse()?, certificate, None)),
        ["serve", at, certificate, payload] => {
            runtime.block_on(serve(at.parse()?, certificate, Some(payload.parse()?)))
        }
        ["send", to, certificate, bytes] => {
            runtime.block_on(send(to.parse()?, certificate, bytes.parse()?, None))
        }
        ["send", to, certificate, bytes, payload] => {
            runtime.block_on(send(to.parse()?, certificate, bytes.parse()?, Some(payload.parse()?)))
        }
        _ => Err("serve ADDRESS CERTIFICATE [PAYLOAD], or send ADDRESS CERTIFICATE BYTES [PAYLOAD]".into()),
    }
}

/// As quinn is by default, or with packets of one length.
fn transport(payload: Option<u16>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    if let Some(payload) = payload {
        transport
            .initial_mtu(payload)
            .min_mtu(payload)
            .mtu_discovery_config(None)
            .enable_segmentation_offload(false);
    }
    Arc::new(transport)
}

async fn serve(at: SocketAddr, certificate: &str, payload: Option<u16>) -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let own = CertificateDer::from(made.cert);
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let mut config = ServerConfig::with_single_cert(vec![own.clone()], key)?;
    config.transport_config(transport(payload));
    let endpoint = Endpoint::server(config, at)?;
    std::fs::write(certificate, &own)?;
    println!("listening");
    while let Some(incoming) = endpoint.accept().await {
        let connection = incoming.await?;
        let (mut answer, mut stream) = connection.accept_bi().await?;
        let (mut bytes, mut times) = (0u64, None);
        let cpu = process_time();
        while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
            bytes += chunk.bytes.len() as u64;
            let now = Instant::now();
            times = Some((times.map_or(now, |(first, _)| first), now));
        }
        let took = times.map_or(Duration::ZERO, |(first, last): (Instant, Instant)| last - first);
        let cpu = process_time() - cpu;
        answer.write_all(format!("{bytes} {} {}", took.as_secs_f64(), cpu.as_secs_f64()).as_bytes()).await?;
        answer.finish()?;
        connection.closed().await;
    }
    Ok(())
}

async fn send(
    to: SocketAddr,
    certificate: &str,
    mut bytes: u64,
    payload: Option<u16>,
) -> Result<(), Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(certificate)?))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(payload));
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut endpoint = Endpoint::client(any.parse()?)?;
    endpoint.set_default_client_config(config);
    let cpu = process_time();
    let connection = endpoint.connect(to, NAME)?.await?;
    let (mut stream, mut answer) = connection.open_bi().await?;
    let zeros = vec![0; PIECE];
    while bytes > 0 {
        let piece = bytes.min(PIECE as u64);
        stream.write_all(&zeros[..piece as usize]).await?;
        bytes -= piece;
    }
    stream.finish()?;
    let told = String::from_utf8(answer.read_to_end(1000).await?)?;
    let sender = (process_time() - cpu).as_secs_f64();
    let lost = connection.stats().path.lost_packets;
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    let [received, seconds, receiver] = told.split(' ').collect::<Vec<_>>()[..] else {
        return Err("no answer".into());
    };
    println!(
        "{{\"received_bytes\": {received}, \"seconds\": {seconds}, \"sender_cpu_seconds\": {sender}, \
         \"receiver_cpu_seconds\": {receiver}, \"retransmitted_packets\": {lost}}}"
    );
    Ok(())
}

/// Processor time that this process has used.
fn process_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
