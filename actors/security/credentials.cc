#include "stagecraft/actors/security/credentials.h"

#include <fmt/format.h>

#include "stagecraft/actors/security/member_folder.h"
#include "stagecraft/actors/security/small_file.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

security::MemberFolder faultless_member(const std::string& dir) {
  security::MemberFolder found = security::examine_member(dir);
  if (found.problems.empty()) {
    return found;
  }
  std::string message = found.problems.front();
  if (const std::size_t more = found.problems.size() - 1; more > 0) {
    message += fmt::format(" ({} more: stagecraft credentials show '{}')", more, dir);
  }
  throw Error(Errc::UsageFile, message);
}

}  // namespace

Credentials load_credentials(const std::string& dir) {
  return faultless_member(dir).paths;
}

Credentials load_worker_credentials(const std::string& dir) {
  const security::MemberFolder found = faultless_member(dir);
  if (found.certificate->role == security::Role::Driver) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' has the driver's certificate, and this process is a worker; name "
                            "a folder of a worker, such as worker-0 beside it",
                            dir));
  }
  return found.paths;
}

Credentials load_driver_credentials(const std::string& cluster) {
  if (security::exists(cluster + "/" + security::kCertificateFile)) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' is the folder of one process, and the driver expects the folder "
                            "of the cluster, which has a folder {} in it; name that one",
                            cluster,
                            security::kDriverMember));
  }
  const std::string dir = cluster + "/" + security::kDriverMember;
  const security::MemberFolder found = faultless_member(dir);
  if (found.certificate->role != security::Role::Driver) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' has the certificate of {}, and this process is the driver; copy "
                            "the driver's folder there",
                            dir,
                            found.certificate->name));
  }
  return found.paths;
}

}  // namespace stagecraft
