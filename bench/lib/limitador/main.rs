//! A rate limit decided by Limitador's library in memory, behind actix-web, which Limitador's own server uses too:
//! `limitador-bench <port> <limit>…`. One worker, as the servers of a bench have one core.
use actix_web::{web, App, HttpResponse, HttpServer};
use limitador::{limit::Limit, RateLimiter};
use serde::Deserialize;
use std::collections::HashMap;

const HOUR_SECONDS: u64 = 3_600;
/// Counters that are kept at a time.
const COUNTERS: u64 = 10_000_000;

#[derive(Deserialize)]
struct Check {
    namespace: String,
    values: HashMap<String, String>,
    delta: u64,
}

/// The namespace of a limit has its number.
async fn check_and_report(limiter: web::Data<RateLimiter>, check: web::Json<Check>) -> HttpResponse {
    let Check { namespace, values, delta } = check.into_inner();
    match limiter.check_rate_limited_and_update(&namespace.into(), &values.into(), delta) {
        Ok(result) if result.limited => HttpResponse::TooManyRequests().json(()),
        Ok(_) => HttpResponse::Ok().json(()),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let port = numbers.next().expect("a port") as u16;
    let limiter = RateLimiter::new(COUNTERS);
    for limit in numbers {
        let user = "user".try_into().expect("a variable");
        limiter.add_limit(Limit::new(format!("bench {limit}"), limit, HOUR_SECONDS, vec![], vec![user]));
    }
    let limiter = web::Data::new(limiter);
    HttpServer::new(move || {
        App::new().app_data(limiter.clone()).route("/check_and_report", web::post().to(check_and_report))
    })
    .workers(1)
    .bind(("127.0.0.1", port))?
    .run()
    .await
}
