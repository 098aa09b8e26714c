#include "stagecraft/tools/launch/program.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

/// Blocks all signals. Returns the mask before.
sigset_t hold_signals() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return before;
}

/// Runs in the child. Destroys nothing of the parent's here.
[[noreturn]] void be_child(const std::vector<std::string>& program, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {  // the parent ended before the death signal was set
    _exit(static_cast<int>(ExitCode::Failed));
  }
  try {
    become_program(program);
  } catch (const Error& error) {
    std::cerr << "stagecraft: " << error.what() << std::endl;
    _exit(static_cast<int>(exit_code(error)));
  }
}

}  // namespace

void become_program(std::vector<std::string> program) {
  std::string path = program.front();
  if (path == "train") {
    path = "/proc/self/exe";
    program.insert(program.begin(), "stagecraft");
  }
  std::vector<char*> words;
  for (std::string& word : program) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  execvp(path.c_str(), words.data());
  throw Error(
      Errc::UsageFile,
      fmt::format("{} cannot be run: {}; expected train, or a program", path, strerror(errno)));
}

ExitCode run_program(const std::vector<std::string>& program) {
  const sigset_t before = hold_signals();  // the program answers them
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    be_child(program, parent);
  }
  if (child < 0) {
    throw Error(Errc::DeviceOutOfMemory,
                fmt::format("no process can be had for {}: {}", program.front(), strerror(errno)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? static_cast<ExitCode>(WEXITSTATUS(status))
                           : interrupted_by(WTERMSIG(status));
}

bool is_told_to_end() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  const auto has_come = [&pending](int signal) { return sigismember(&pending, signal) == 1; };
  return has_come(SIGTERM) || has_come(SIGINT) || has_come(SIGHUP);
}

void leave_signals() {
  hold_signals();
}

}  // namespace stagecraft::tools
