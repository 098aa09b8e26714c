#include "stagecraft/tools/memory_abort.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <new>
#include <string_view>

#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {
namespace {

/// A typical allocation of a library: with less left, its next allocation fails.
constexpr rlim_t kLittle = rlim_t{16} << 20U;

/// A failed allocation longer ago was handled. Units: seconds.
constexpr std::int64_t kJustNow = 2;

std::atomic<std::int64_t> allocation_failed_at{-kJustNow - 1};  // NOLINT: a signal handler's

std::int64_t seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

[[noreturn]] void note_failure() {
  allocation_failed_at = seconds_now();
  throw std::bad_alloc();
}

/// Returns the pages of this process's address space; 0: unknown. Async-signal-safe.
rlim_t pages_mapped() {
  std::array<char, 32> text{};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? 0 : read(file, text.data(), text.size());
  if (file >= 0) {
    close(file);
  }
  rlim_t pages = 0;
  for (ssize_t i = 0; i < size && text[static_cast<std::size_t>(i)] != ' '; ++i) {
    pages = 10 * pages + static_cast<rlim_t>(text[static_cast<std::size_t>(i)] - '0');
  }
  return pages;
}

bool is_at_limit() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return false;
  }
  const auto page = static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  return pages_mapped() * page + kLittle >= limit.rlim_cur;
}

extern "C" void told_abort(int) {
  if (seconds_now() - allocation_failed_at <= kJustNow || is_at_limit()) {
    constexpr std::string_view kText =
        "\nstagecraft: memory ran out: use a smaller model or smaller microbatches, or raise the "
        "limits of memory and address space (ulimit -v)\n";
    static_cast<void>(!write(STDERR_FILENO, kText.data(), kText.size()));
    _exit(static_cast<int>(ExitCode::Failed));
  }
  signal(SIGABRT, SIG_DFL);  // abort() raises it once more
}

}  // namespace

void tell_lack_of_memory_at_abort() {
  std::set_new_handler(note_failure);
  signal(SIGABRT, told_abort);
}

}  // namespace stagecraft::tools
