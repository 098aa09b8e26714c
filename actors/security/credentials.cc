#include "stagecraft/actors/security/credentials.h"

#include <fmt/format.h>

#include "stagecraft/actors/security/member_folder.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

Credentials load_credentials(const std::string& dir) {
  const security::MemberFolder found = security::examine_member(dir);
  if (found.problems.empty()) {
    return found.paths;
  }
  std::string message = found.problems.front();
  if (const std::size_t more = found.problems.size() - 1; more > 0) {
    message += fmt::format(" ({} more: stagecraft credentials show '{}')", more, dir);
  }
  throw Error(Errc::UsageFile, message);
}

}  // namespace stagecraft
