/// examine_member examines the folder of one member of a cluster: the contents of its files, and
/// all their faults. load_credentials throws these faults, `stagecraft credentials show` lists
/// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/security/credential_paths.h"
#include "stagecraft/actors/security/pem.h"
#include "stagecraft/actors/security/small_file.h"

namespace stagecraft::security {

struct FileMode {
  std::string name;
  mode_t mode = 0;
};

struct MemberFolder {
  Credentials paths;
  std::vector<FileMode> files;  ///< those that were readable
  std::optional<CertificateFacts> certificate, authority;
  std::vector<std::string> problems;  ///< whole messages, the most severe first
};

/// Examines the folder. Errors: none for faults of the folder; Internal for a lack of memory.
[[nodiscard]] MemberFolder examine_member(const std::string& dir);

/// Returns whether `dir` is the folder of a cluster and not of a member.
[[nodiscard]] bool is_cluster_folder(const std::string& dir);

/// Returns the certificate in a file to which only its owner may write. `modes`, if given, gets the
/// file's mode, also when the file is refused.
/// Errors: UsageFile.
[[nodiscard]] Certificate read_certificate(const std::string& dir,
                                           const std::string& name,
                                           std::vector<FileMode>* modes = nullptr);

/// Returns the key in a file that only its owner may read. `modes`, Errors: as above.
[[nodiscard]] PrivateKey read_key(const std::string& dir,
                                  const std::string& name,
                                  std::vector<FileMode>* modes = nullptr);

/// Checks a folder. Errors: UsageFile for a folder in which others may replace files.
void require_own_folder(const std::string& dir);

/// Checks an authority. Errors: UsageFile for one that has expired or is not valid yet, and for one
/// whose certificates name no roles.
void require_valid_authority(const std::string& path, const CertificateFacts& facts);

/// Checks a key. Errors: UsageFile for a key that is not the certificate's.
void require_pair(const std::string& certificate_path,
                  const Certificate& certificate,
                  const std::string& key_path,
                  const PrivateKey& key);

}  // namespace stagecraft::security
