/// certificate_parts has the steps in which this program makes a certificate: an unsigned one, its
/// issuer and extensions, and the signature.
///
/// The authority of a cluster and new_server_certificate use them. Serial numbers are 128 random
/// bits. Errors of all: Internal, with OpenSSL's reason.
#pragma once

#include <string>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/security/pem.h"

namespace stagecraft::security {

/// Returns a new key: ECDSA on prime256v1.
[[nodiscard]] PrivateKey new_key();

/// Returns a certificate for `key` without issuer, extensions and signature.
/// Units: the validity is to the second.
[[nodiscard]] Certificate unsigned_certificate(const PrivateKey& key,
                                               const std::string& organization,
                                               const std::string& name,
                                               TimePoint valid_from,
                                               TimePoint valid_until);

/// Names the issuer. It may be the certificate itself.
void set_issuer(const Certificate& certificate, const Certificate& issuer);

/// Adds an extension. `kind`: one of OpenSSL's NIDs; `value`: in the language of its configuration.
/// Requires: the certificate has its issuer, which is `issuer`.
void add_extension(const Certificate& certificate,
                   const Certificate& issuer,
                   int kind,
                   const std::string& value);

/// Signs a certificate that is otherwise complete with its issuer's key.
void sign(const Certificate& certificate, const PrivateKey& key);

}  // namespace stagecraft::security
