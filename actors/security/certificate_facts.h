/// CertificateFacts holds the contents of a certificate, for people and for checks.
///
/// HR-1: a certificate names its holder's role in its only alternative name: the URI
///       `stagecraft://CLUSTER/driver`, `stagecraft://CLUSTER/worker/worker-3` or
///       `stagecraft://CLUSTER/authority`, in agreement with its subject.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "stagecraft/actors/security/pem.h"

namespace stagecraft::security {

using TimePoint = std::chrono::system_clock::time_point;

/// Role says which part of a cluster the holder of a certificate may act as.
enum class Role : std::uint8_t { None, Authority, Driver, Worker };

struct CertificateFacts {
  Role role = Role::None;   ///< None: a certificate that names no role, or another name's
  std::string cluster;      ///< the organization of its subject
  std::string name;         ///< "driver", "worker-3"; "authority" for an authority
  std::string serial;       ///< hexadecimal
  std::string fingerprint;  ///< SHA-256, "AB:CD:..."
  TimePoint valid_from, valid_until;
};

[[nodiscard]] CertificateFacts facts_of(const Certificate& certificate);

/// Returns CertificateFacts::fingerprint alone. Reads nothing else of the certificate.
[[nodiscard]] std::string fingerprint_of(const x509_st& certificate);

/// Returns the URI of HR-1. Requires: `role` is not None.
[[nodiscard]] std::string role_uri(Role role, const std::string& cluster, const std::string& name);

/// Returns "2026-11-22 05:38:27 UTC".
[[nodiscard]] std::string utc_text(TimePoint time);

}  // namespace stagecraft::security
