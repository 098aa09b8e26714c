/// The folder of one member of a cluster, looked through: what its files say, and everything that
/// is wrong with them. load_credentials throws what is found here, `stagecraft credentials show`
/// lists it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/security/credentials.h"
#include "stagecraft/actors/security/pem.h"
#include "stagecraft/actors/security/small_file.h"

namespace stagecraft::security {

inline constexpr const char* kCertificateFile = "certificate.pem";
inline constexpr const char* kKeyFile = "key.pem";
inline constexpr const char* kAuthorityFile = "ca.pem";
inline constexpr const char* kAuthorityKeyFile = "ca-key.pem";  ///< in the cluster's folder alone

struct FileMode {
  std::string name;
  mode_t mode = 0;
};

struct MemberFolder {
  Credentials paths;
  std::vector<FileMode> files;  ///< those that could be read
  std::optional<CertificateFacts> certificate, authority;
  std::vector<std::string> problems;  ///< whole messages, the gravest first
};

/// Errors: none for what is wrong with the folder; Internal where memory lacks.
[[nodiscard]] MemberFolder examine_member(const std::string& dir);

/// Whether `dir` is that of a cluster and not of a member.
[[nodiscard]] bool is_cluster_folder(const std::string& dir);

/// Returns the certificate in a file that nobody but its owner may write to. `modes`, where given,
/// learns the file's mode, also when it is refused.
/// Errors: UsageFile.
[[nodiscard]] Certificate read_certificate(const std::string& dir,
                                           const std::string& name,
                                           std::vector<FileMode>* modes = nullptr);

/// Returns the key in a file that nobody but its owner may read. `modes`, Errors: as above.
[[nodiscard]] PrivateKey read_key(const std::string& dir,
                                  const std::string& name,
                                  std::vector<FileMode>* modes = nullptr);

/// Errors: UsageFile for a folder in which others may exchange files.
void require_own_folder(const std::string& dir);

/// Errors: UsageFile for an authority that has expired or is not valid yet.
void require_valid_authority(const std::string& path, const CertificateFacts& facts);

/// Errors: UsageFile for a key that is not the certificate's.
void require_pair(const std::string& certificate_path,
                  const Certificate& certificate,
                  const std::string& key_path,
                  const PrivateKey& key);

}  // namespace stagecraft::security
