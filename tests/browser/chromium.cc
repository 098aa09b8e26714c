#include "stagecraft/tests/browser/chromium.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include <poll.h>
#include <spawn.h>

#include "stagecraft/tests/support/catch.h"

extern char** environ;

namespace stagecraft::tests {
namespace {

using Clock = std::chrono::steady_clock;

/// Chromium expects its pipe at these descriptor numbers.
constexpr int kReadsAt = 3;
constexpr int kWritesAt = 4;

std::optional<std::string> find_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + name;
    if (access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return std::nullopt;
}

std::array<int, 2> make_high_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe could be made for Chromium");
  }
  // Moves both ends above the numbers they are copied to, so that no copy overwrites an end that is
  // still to be copied.
  for (int& end : ends) {
    const int high = fcntl(end, F_DUPFD_CLOEXEC, 10);
    close(end);
    end = high;
  }
  return ends;
}

pid_t start(const std::string& program, const std::string& profile, int reads, int writes) {
  std::vector<std::string> words{program,
                                 "--headless",
                                 "--no-sandbox",  // tests may run as root, in a container
                                 "--disable-gpu",
                                 "--disable-dev-shm-usage",
                                 "--hide-scrollbars",
                                 "--no-first-run",
                                 "--remote-debugging-pipe",
                                 "--user-data-dir=" + profile,
                                 "about:blank"};
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, reads, kReadsAt);
  posix_spawn_file_actions_adddup2(&actions, writes, kWritesAt);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // makes its helpers end with it
  pid_t pid = -1;
  const int failed =
      posix_spawn(&pid, arguments.front(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw std::runtime_error(program + " could not be started");
  }
  return pid;
}

}  // namespace

std::optional<std::string> find_chromium() {
  if (const char* named = std::getenv("STAGECRAFT_CHROMIUM")) {
    return named;
  }
  for (const char* name : {"chromium-headless-shell", "chromium", "chromium-browser"}) {
    if (auto found = find_in_path(name)) {
      return found;
    }
  }
  return std::nullopt;
}

Chromium::Chromium() {
  const auto program = find_chromium();
  if (!program) {
    SKIP("there is no Chromium on this machine; tools/setup installs one");
  }
  const auto to_browser = make_high_pipe();
  const auto from_browser = make_high_pipe();
  commands_ = to_browser[1];
  answers_ = from_browser[0];
  pid_ = start(*program, profile_.path(), to_browser[0], from_browser[1]);
  close(to_browser[0]);
  close(from_browser[1]);
}

Chromium::~Chromium() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(commands_);
  close(answers_);
}

nlohmann::json Chromium::call(const std::string& method,
                              const nlohmann::json& parameters,
                              const std::string& session) {
  nlohmann::json command{{"id", ++last_id_}, {"method", method}, {"params", parameters}};
  if (!session.empty()) {
    command["sessionId"] = session;
  }
  const std::string text = command.dump() + '\0';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t size = write(commands_, text.data() + sent, text.size() - sent);
    if (size <= 0) {
      throw std::runtime_error("Chromium does not read " + method);
    }
    sent += static_cast<std::size_t>(size);
  }
  const auto deadline = Clock::now() + kAnswerLimit;
  while (true) {
    const nlohmann::json message = read_message(deadline);
    if (message.value("id", 0) != last_id_) {
      continue;
    }
    if (message.contains("error")) {
      throw std::runtime_error(method + ": " + message["error"].dump());
    }
    return message["result"];
  }
}

void Chromium::wait_for_event(const std::string& method, const std::string& session) {
  const auto deadline = Clock::now() + kAnswerLimit;
  for (std::size_t i = 0;; ++i) {
    while (i >= events_.size()) {
      (void)read_message(deadline);
    }
    if (events_[i]["method"] == method && events_[i].value("sessionId", "") == session) {
      return;
    }
  }
}

std::vector<nlohmann::json> Chromium::events(const std::string& session) const {
  std::vector<nlohmann::json> own;
  for (const nlohmann::json& event : events_) {
    if (event.value("sessionId", "") == session) {
      own.push_back(event);
    }
  }
  return own;
}

/// Returns the next answer or event; events are kept as well.
nlohmann::json Chromium::read_message(Clock::time_point deadline) {
  std::size_t end = received_.find('\0');
  while (end == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{.fd = answers_, .events = POLLIN, .revents = 0};
    std::array<char, 65536> buffer{};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) {
      throw std::runtime_error("Chromium does not answer");
    }
    const ssize_t size = read(answers_, buffer.data(), buffer.size());
    if (size <= 0) {
      throw std::runtime_error("Chromium ended");
    }
    const std::size_t before = received_.size();
    received_.append(buffer.data(), static_cast<std::size_t>(size));
    end = received_.find('\0', before);
  }
  nlohmann::json message = nlohmann::json::parse(received_.substr(0, end));
  received_.erase(0, end + 1);
  if (message.contains("method")) {
    events_.push_back(message);
  }
  return message;
}

}  // namespace stagecraft::tests
