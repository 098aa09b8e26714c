/// Credentials holds the paths of the three files by which a process of a cluster proves its
/// membership and judges others. This file also has the names of all files of credentials.
#pragma once

#include <string>

namespace stagecraft {

/// Credentials holds paths of PEM files.
struct Credentials {
  std::string certificate, key, authority;
};

namespace security {

inline constexpr const char* kCertificateFile = "certificate.pem";
inline constexpr const char* kKeyFile = "key.pem";
inline constexpr const char* kAuthorityFile = "ca.pem";
inline constexpr const char* kAuthorityKeyFile = "ca-key.pem";  ///< in the cluster's folder alone
inline constexpr const char* kDriverMember = "driver";          ///< the driver's name and folder

}  // namespace security
}  // namespace stagecraft
