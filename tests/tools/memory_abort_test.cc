/// Runs each case in a child process, because the case aborts it.
#include "stagecraft/tools/memory_abort.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

struct End {
  int status = 0;
  std::string err;
};

/// Returns how a process ends that does this.
template <class Work>
End end_of(Work&& work) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/err";
  const pid_t child = fork();
  if (child == 0) {
    const int err = open(file.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(err, STDERR_FILENO);
    tools::tell_lack_of_memory_at_abort();
    work();
    _exit(0);
  }
  End end;
  REQUIRE(waitpid(child, &end.status, 0) == child);
  end.err = read_text_file(file);
  return end;
}

/// No caller can catch what it throws.
void need(std::size_t bytes) noexcept {
  static void* volatile kept = nullptr;  // keeps the compiler from removing the call
  kept = ::operator new(bytes);
  ::operator delete(kept);
}

TEST_CASE("an abort for want of memory is told as that", "[tools][memory]") {
  const End end = end_of([] { need(std::size_t{1} << 60U); });
  CHECK(WIFEXITED(end.status));
  CHECK(WEXITSTATUS(end.status) == 1);
  CHECK_THAT(end.err, ContainsSubstring("stagecraft: memory ran out"));
}

TEST_CASE("so is that of a library at the limit of the address space", "[tools][memory]") {
#ifdef __SANITIZE_ADDRESS__
  SKIP("the address sanitizer takes terabytes of address space");
#endif
  const End end = end_of([] {
    const rlimit one{.rlim_cur = 1, .rlim_max = 1};  // less than is in use
    setrlimit(RLIMIT_AS, &one);
    std::abort();
  });
  CHECK(WIFEXITED(end.status));
  CHECK_THAT(end.err, ContainsSubstring("ulimit -v"));
}

TEST_CASE("every other abort stays one", "[tools][memory]") {
  const End end = end_of([] { std::abort(); });
  CHECK(WIFSIGNALED(end.status));
  CHECK(WTERMSIG(end.status) == SIGABRT);
  CHECK_THAT(end.err, !ContainsSubstring("memory"));
}

}  // namespace
}  // namespace stagecraft::tests
