#include "stagecraft/actors/launch/port/file_limit.h"

#include <sys/resource.h>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Files that one worker process takes in the driver: two connections of the data plane, one for
/// the socket, the memory shared each way with its socket, one connection of the control plane, its
/// lifeline and its output.
constexpr rlim_t kFilesOfWorker = 10;

}  // namespace

void raise_file_limit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
  }
}

void require_files(int workers) {
  struct rlimit limit {};
  const auto needed = static_cast<rlim_t>(workers) * kFilesOfWorker + kSpareDescriptors;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} worker processes need about {} open files, and this process may "
                            "have {}: raise its hard limit (ulimit -Hn {}, LimitNOFILE= of a "
                            "systemd service), or use fewer worker processes",
                            workers,
                            needed,
                            limit.rlim_cur,
                            needed));
  }
}

}  // namespace stagecraft
