//! Servers that the environment gives.

use std::env;
use std::io;

use onceonly_test_servers::{PgBouncer, Upstream};
use percent_encoding::percent_decode_str;
use url::Url;

/// Whether a variable is set, and not just empty.
pub(crate) fn is_given(variable: &str) -> bool {
    variable_value(variable).is_some()
}

pub(crate) fn variable_value(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Starts a PgBouncer before the server of `url`; with it comes the URL that leads through it.
pub(crate) fn pgbouncer_before(url: &str) -> io::Result<(PgBouncer, String)> {
    // The URL may hold a password: no error repeats it.
    let unfit =
        || io::Error::other("ONCEONLY_POSTGRES_URL is not postgres://user@host:port/database");
    let mut url = Url::parse(url).map_err(|_| unfit())?;
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let host = url.host_str().ok_or_else(unfit)?;
    let user = Some(url.username()).filter(|user| !user.is_empty());
    let bouncer = PgBouncer::start_before(&Upstream {
        host: plain(host.trim_matches(['[', ']'])),
        port: url.port().unwrap_or(5432),
        user: plain(user.ok_or_else(unfit)?),
        password: url.password().map(plain),
    })?;
    let addr = bouncer.addr();
    url.set_ip_host(addr.ip()).map_err(|()| unfit())?;
    url.set_port(Some(addr.port())).map_err(|()| unfit())?;
    url.set_password(None).map_err(|()| unfit())?;
    url.set_query(None);
    Ok((bouncer, url.to_string()))
}
