//! Checks the Update Catalog. Only some commands require it, and offline sites have no access to
//! it: it may be unreachable unless --catalog names one.

use wincimg_catalog::{Catalog, DEFAULT_CATALOG};
use wincimg_common::diagnose::{Diagnose, Diagnosis};
use wincimg_common::progress::Silent;
use wincimg_common::untrusted::without_password;
use wincimg_http::{CertificateFiles, HttpClient, RetryPolicy, Url, host_of, redacted};

use super::{Check, fix_of_answer};
use crate::cli::prelude::*;

const KIND: &str = "update catalog";
/// An update that has been in the catalog for years.
const SAMPLE: &str = "KB4549949";
/// Time limit for the default catalog.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// The catalog in which updates are searched.
#[derive(Debug, Args)]
pub(super) struct CatalogArg {
    #[arg(long, value_name = "URL", help = format!(
        "URL of the Microsoft Update Catalog or a copy of it; if set, it must be reachable \
         [default: {DEFAULT_CATALOG}]"
    ))]
    catalog: Option<String>,
}

impl CatalogArg {
    fn address(&self) -> &str {
        self.catalog.as_deref().unwrap_or(DEFAULT_CATALOG)
    }

    pub(super) fn host(&self) -> Option<String> {
        Url::parse(self.address()).ok().map(|url| host_of(&url))
    }

    pub(super) async fn check(
        &self,
        insecure: &[String],
        certificates: CertificateFiles,
        wait_limit: Duration,
    ) -> Check {
        let address = self.address();
        // A password in the URL is not printed.
        let subject = match Url::parse(address) {
            Ok(url) if url.has_host() => redacted(&url),
            _ => without_password(address).into_owned(),
        };
        let wait_limit = match self.catalog {
            Some(_) => wait_limit,
            None => wait_limit.min(DEFAULT_TIMEOUT),
        };
        let answer =
            tokio::time::timeout(wait_limit, search(address, insecure, certificates)).await;
        let (finding, hint) = match answer {
            Ok(Ok(hits)) => {
                let finding = format!("reachable; updates found for {SAMPLE}: {hits}");
                return Check::ok(KIND, &subject, finding);
            }
            Ok(Err(error)) => {
                let Diagnosis { code, hint, .. } = error.diagnosis();
                let hint = hint.or_else(|| fix_of_answer(&subject, code));
                (error_chain(&error), hint)
            }
            Err(_) => (
                format!("no answer within {} s", wait_limit.as_secs_f32()),
                None,
            ),
        };
        if self.catalog.is_none() {
            let finding = format!(
                "not reachable ({finding}); only `node hotfix search`, `fetch` and `script` require it; \
                 to check a copy, add --catalog URL"
            );
            return Check::skipped(KIND, &subject, finding);
        }
        let hint = hint.unwrap_or_else(|| {
            "check the URL, DNS, the firewall, HTTPS_PROXY and NO_PROXY".to_owned()
        });
        Check::problem(KIND, &subject, finding, hint)
    }
}

/// Number of updates that a search finds.
async fn search(
    address: &str,
    insecure: &[String],
    certificates: CertificateFiles,
) -> Result<usize, Problem> {
    let once = RetryPolicy {
        retries: 0,
        ..RetryPolicy::default()
    };
    let http = HttpClient::new(USER_AGENT, insecure, once, Arc::new(Silent))
        .map_err(Problem::from_diagnosed)?
        .with_certificates(certificates);
    let hits = Catalog::new(address, &http)?.search(SAMPLE).await?;
    Ok(hits.len())
}
