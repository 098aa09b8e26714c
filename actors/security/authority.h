/// Authority is the private certificate authority of one cluster, which makes its members'
/// certificates.
///
/// Keys are ECDSA on prime256v1: TLS 1.2 and 1.3 take them with every list of ciphers that CAF 0.17
/// sets. The authority's certificate certifies members alone, no further authority.
/// AU-1: every certificate names its holder's role (HR-1). The driver's serves the listening end of
///       a connection alone, and a worker's the calling end alone, so that TLS itself refuses a
///       worker that poses as the driver.
#pragma once

#include <string>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/security/pem.h"

namespace stagecraft::security {

/// CertificateTerms is the content of a certificate.
struct CertificateTerms {
  std::string cluster, name;
  TimePoint valid_from, valid_until;  ///< to the second
};

struct Authority {
  Certificate certificate;
  PrivateKey key;
};

/// Returns an authority with a new key.
[[nodiscard]] Authority new_authority(const CertificateTerms& terms);

/// Returns a member's certificate for `key`. The name `driver` makes the driver's, every other name
/// a worker's. Keeps AU-1.
[[nodiscard]] Certificate issue(const Authority& authority,
                                const PrivateKey& key,
                                const CertificateTerms& terms);

}  // namespace stagecraft::security
