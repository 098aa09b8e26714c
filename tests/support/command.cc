#include "stagecraft/tests/support/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <poll.h>
#include <spawn.h>

extern char** environ;

namespace stagecraft::tests {
namespace {

using Clock = std::chrono::steady_clock;

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe could be made for a command");
  }
  return ends;
}

void close_end(int& fd) {
  if (fd >= 0) {
    close(fd);
    fd = -1;
  }
}

/// Appends the available output; closes the end when no more will come.
void drain(int& fd, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  if (size > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  } else {
    close_end(fd);
  }
}

/// Gives the program default signals instead of this process's. A background job ignores SIGINT, a
/// job under nohup SIGHUP.
class DefaultSignals {
 public:
  DefaultSignals() {
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) {
      sigaddset(&signals, signal);
    }
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~DefaultSignals() { posix_spawnattr_destroy(&attributes_); }
  DefaultSignals(const DefaultSignals&) = delete;
  DefaultSignals& operator=(const DefaultSignals&) = delete;

  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

RunningCommand::RunningCommand(const std::vector<std::string>& words,
                               const std::string& directory) {
  auto out = make_pipe();
  auto err = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  if (!directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  }
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const DefaultSignals signals;
  const int failed =
      posix_spawnp(&pid_, arguments.front(), &actions, signals.get(), arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close_end(out[1]);
  close_end(err[1]);
  out_ = out[0];
  err_ = err[0];
  if (failed != 0) {
    pid_ = -1;
    close_end(out_);
    close_end(err_);
    throw std::runtime_error("the program could not be started: " + words.front());
  }
}

RunningCommand::~RunningCommand() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_end(out_);
  close_end(err_);
}

void RunningCommand::keep_pace() const {
  constexpr int kPage = 4096;
  if (fcntl(out_, F_SETPIPE_SZ, kPage) < 0) {
    throw std::runtime_error("the pipe of a command could not be made smaller");
  }
}

bool RunningCommand::wait_for_output(const std::string& text, std::chrono::seconds limit) {
  return wait_for(result_.out, text, limit);
}

bool RunningCommand::wait_for_error(const std::string& text, std::chrono::seconds limit) {
  return wait_for(result_.err, text, limit);
}

bool RunningCommand::wait_for(const std::string& found,
                              const std::string& text,
                              std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  while (found.find(text) == std::string::npos) {
    if (!read_some(deadline)) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> RunningCommand::next_line(std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  std::size_t end = result_.out.find('\n', line_);
  while (end == std::string::npos) {
    if (!read_some(deadline)) {
      return std::nullopt;
    }
    end = result_.out.find('\n', line_);
  }
  std::string line = result_.out.substr(line_, end - line_);
  line_ = end + 1;
  return line;
}

void RunningCommand::send_signal(int signal) const {
  if (pid_ > 0) {
    kill(pid_, signal);
  }
}

std::vector<pid_t> RunningCommand::children() const {
  const std::string ours = "PPid:\t" + std::to_string(pid_);
  std::vector<pid_t> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream status(entry.path() / "status");  // of what is no process there is none
    for (std::string line; std::getline(status, line);) {
      if (line == ours) {
        all.push_back(std::stoi(entry.path().filename().string()));
        break;
      }
    }
  }
  return all;
}

CommandResult RunningCommand::wait(std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  while (read_some(deadline)) {
  }
  if (out_ >= 0 || err_ >= 0) {
    result_.timed_out = true;
    kill(pid_, SIGKILL);
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  result_.exit_code = exit_code(status);
  return result_;
}

/// Returns false if both ends are closed or the deadline has passed.
bool RunningCommand::read_some(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  if ((out_ < 0 && err_ < 0) || left <= 0) {
    return false;
  }
  // poll() skips negative descriptors.
  std::array<pollfd, 2> ends{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (poll(ends.data(), ends.size(), static_cast<int>(std::min<long long>(left, 1'000'000))) <= 0) {
    return true;
  }
  if (ends[0].revents != 0) {
    drain(out_, result_.out);
  }
  if (ends[1].revents != 0) {
    drain(err_, result_.err);
  }
  return true;
}

CommandResult run_command(const std::vector<std::string>& words, const std::string& directory) {
  return RunningCommand(words, directory).wait();
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "stagecraft-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("no temporary folder could be made at " + pattern);
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  const std::string path = path_ + "/" + name;
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) {
    throw std::runtime_error("could not write " + path);
  }
  return path;
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("could not read " + path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace stagecraft::tests
