/// server_certificate makes the certificate of a server that no authority vouches for. Who talks to
/// the server compares its fingerprint (fingerprint_of).
///
/// A watched run has one, for browsers. Members of a cluster have others (authority.h).
#pragma once

#include <string>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/security/pem.h"

namespace stagecraft::security {

/// Returns a certificate for `key`, signed by itself, of a server at `host`: a name, or an address
/// in digits. It certifies nothing else. Units: the validity is to the second.
/// Errors: Internal, with OpenSSL's reason, also for a name that is none.
[[nodiscard]] Certificate new_server_certificate(const PrivateKey& key,
                                                 const std::string& host,
                                                 TimePoint valid_from,
                                                 TimePoint valid_until);

}  // namespace stagecraft::security
