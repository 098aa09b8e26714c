/// CertificateFacts holds the contents of a certificate, for people and for checks.
#pragma once

#include <chrono>
#include <string>

#include "stagecraft/actors/security/pem.h"

namespace stagecraft::security {

using TimePoint = std::chrono::system_clock::time_point;

struct CertificateFacts {
  std::string cluster;      ///< the organization of its subject
  std::string name;         ///< "driver", "worker-3"; "authority" for an authority
  std::string serial;       ///< hexadecimal
  std::string fingerprint;  ///< SHA-256, "AB:CD:..."
  TimePoint valid_from, valid_until;
};

[[nodiscard]] CertificateFacts facts_of(const Certificate& certificate);

/// Returns "2026-11-22 05:38:27 UTC".
[[nodiscard]] std::string utc_text(TimePoint time);

}  // namespace stagecraft::security
