/// CredentialsReport holds the contents of a folder of credentials, of a cluster or of one member,
/// and all its faults. `stagecraft credentials show` prints it. It never contains keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/actors/security/member_folder.h"

namespace stagecraft::security {

struct MemberReport {
  std::string name;  ///< of the folder
  std::string folder;
  std::optional<CertificateFacts> certificate;
  std::vector<FileMode> files;
  std::vector<std::string> problems;
};

struct CredentialsReport {
  bool is_cluster = false;  ///< false: the folder of one member
  std::optional<CertificateFacts> authority;
  std::vector<FileMode> files;        ///< of the cluster's folder itself
  std::vector<MemberReport> members;  ///< the driver first, workers by number
  std::vector<std::string> problems;  ///< of the cluster's folder itself

  [[nodiscard]] bool good() const;
};

/// Examines a folder. Errors: UsageFile for a folder that holds no credentials.
[[nodiscard]] CredentialsReport inspect_credentials(const std::string& dir);

}  // namespace stagecraft::security
