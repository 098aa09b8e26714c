#include "stagecraft/tools/doctor/talk/asked_host.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/launch/ways/ssh.h"

namespace stagecraft::tools {
namespace {

/// Start files of a shell may print without end: keep the beginning.
constexpr std::size_t kMostSaid = 500;
/// Wait for the last output of an ssh that has ended.
constexpr std::chrono::milliseconds kLastWords{200};

}  // namespace

AskedHost::AskedHost(const std::vector<std::string>& ssh,
                     const Host& host,
                     const std::string& program)
    : name_(host.name) {
  ChildProgram child = ssh_worker(ssh, host, {program, "doctor", "--answer"});
  child.on_line = [inbox = inbox_](std::string_view line) { take(*inbox, line); };
  child_ = std::make_unique<ChildProcess>(child, [inbox = inbox_](const std::string&) {
    const std::scoped_lock lock(inbox->mutex);
    inbox->ended = true;
    inbox->changed.notify_all();
  });
}

void AskedHost::take(Inbox& inbox, std::string_view line) {
  const WallTime now = std::chrono::system_clock::now();
  Json content = content_of(line, "doctor");
  const std::scoped_lock lock(inbox.mutex);
  if (!content.is_null()) {
    inbox.answers.push_back({std::move(content), now});
  } else if (inbox.said.size() < kMostSaid) {
    inbox.said += fmt::format("{}{}", inbox.said.empty() ? "" : "; ", line);
  }
  inbox.changed.notify_all();
}

void AskedHost::ask(const std::string& line) {
  child_->say(line);
}

HostAnswer AskedHost::answer(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(inbox_->mutex);
  const auto there = [this] { return !inbox_->answers.empty(); };
  inbox_->changed.wait_until(lock, deadline, [&] { return there() || inbox_->ended; });
  if (inbox_->ended) {
    inbox_->changed.wait_for(lock, kLastWords, there);
  }
  if (!there()) {
    return {.content = nullptr, .arrived = {}};
  }
  HostAnswer first = std::move(inbox_->answers.front());
  inbox_->answers.pop_front();
  return first;
}

std::string AskedHost::silence() const {
  const auto end = child_->end();
  const std::scoped_lock lock(inbox_->mutex);
  const std::string said = inbox_->said.empty() ? "" : fmt::format(" (it said: {})", inbox_->said);
  return (end ? end_behind_ssh(*end, name_) : std::string("does not answer in time")) + said;
}

}  // namespace stagecraft::tools
