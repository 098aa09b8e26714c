#include "stagecraft/tools/launch/program.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>
#include <utility>

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
[[noreturn]] void be_child(const std::function<void()>& become, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {  // the parent ended before the death signal was set
    _exit(static_cast<int>(ExitCode::Failed));
  }
  ExitCode status = ExitCode::Failed;
  try {
    become();
  } catch (const Error& error) {
    std::cerr << "stagecraft: " << error.what() << std::endl;
    status = exit_code(error);
  }
  _exit(static_cast<int>(status));
}

/// Starts a child that becomes another program, with this mask of signals.
pid_t start_child(const std::string& name,
                  const sigset_t& mask,
                  const std::function<void()>& become) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    be_child(become, parent);
  }
  if (child < 0) {
    throw Error(Errc::DeviceOutOfMemory,
                fmt::format("no process can be had for {}: {}", name, strerror(errno)));
  }
  return child;
}

[[noreturn]] void become_words(const std::string& path, std::vector<std::string> words) {
  std::vector<char*> all;
  for (std::string& word : words) {
    all.push_back(word.data());
  }
  all.push_back(nullptr);
  execvp(path.c_str(), all.data());
  throw Error(
      Errc::UsageFile,
      fmt::format("{} cannot be run: {}; expected train, or a program", path, strerror(errno)));
}

[[noreturn]] void become_command(std::vector<std::string> words) {
  words.insert(words.begin(), "stagecraft");
  become_words("/proc/self/exe", std::move(words));
}

}  // namespace

void become_program(std::vector<std::string> program) {
  if (program.front() == "train") {
    become_command(std::move(program));
  }
  const std::string path = program.front();
  become_words(path, std::move(program));
}

ExitCode run_program(const std::vector<std::string>& program) {
  const sigset_t before = hold_signals();  // the program answers them
  const pid_t child = start_child(program.front(), before, [&] { become_program(program); });
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status_of(status);
}

pid_t start_worker(const std::vector<std::string>& arguments) {
  sigset_t same;
  pthread_sigmask(SIG_BLOCK, nullptr, &same);
  return start_child("a worker", same, [&] {
    std::vector<std::string> words{"worker"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    become_command(std::move(words));
  });
}

ExitCode status_of(int status) {
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
