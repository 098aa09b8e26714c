#include "stagecraft/tools/doctor/talk/ask_hosts.h"

#include <chrono>
#include <filesystem>
#include <memory>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/doctor/talk/asked_host.h"
#include "stagecraft/tools/doctor/talk/limits.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kTimeQuestions = 3;  // the fastest answer counts

double seconds(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// Sets the program of a host's workers, as in launch. If that is a user's own, asks this program
/// at the path that it has here.
void name_program(const Host& host, HostExam& exam) {
  exam.program = host.worker.empty() ? find_worker_program("").path : host.worker;
  exam.own_program = fs::path(exam.program).filename() != "stagecraft";
  if (exam.own_program) {
    exam.program = fs::read_symlink("/proc/self/exe").string();
  }
}

/// Asks all hosts that still answer, in rounds.
class Rounds {
 public:
  explicit Rounds(const Round& round) : exams_(1) {
    for (const Host& host : round.hosts) {
      HostExam exam;
      exam.name = host.name;
      exam.workers = host.slots;
      name_program(host, exam);
      asked_.push_back(std::make_unique<AskedHost>(round.ssh, host, exam.program));
      exams_.push_back(std::move(exam));
    }
  }

  /// `question(i)`: the line for host i. `take(exam, answer)`: stores the answer.
  template <class Question, class Take>
  void ask_all(std::chrono::seconds patience, const Question& question, const Take& take) {
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (exam(i).silence.empty()) {
        asked_[i]->ask(question(i));
      }
    }
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (exam(i).silence.empty()) {
        hear(i, deadline, take);
      }
    }
  }

  HostExam& here() { return exams_.front(); }
  HostExam& exam(std::size_t host) { return exams_[host + 1]; }
  std::vector<HostExam>& exams() { return exams_; }

 private:
  template <class Take>
  void hear(std::size_t i, std::chrono::steady_clock::time_point deadline, const Take& take) {
    const HostAnswer answer = asked_[i]->answer(deadline);
    if (answer.content.is_null()) {
      exam(i).silence = asked_[i]->silence();
      return;
    }
    try {
      take(i, answer);
    } catch (const Json::exception&) {
      exam(i).silence = "answers what this build cannot read: it has another one";
    }
  }

  std::vector<HostExam> exams_;  // this machine first
  std::vector<std::unique_ptr<AskedHost>> asked_;
};

/// Opens a door where a driver would let workers reach this machine.
std::unique_ptr<Door> open_here(const Round& round, HostExam& here) {
  try {
    auto door = std::make_unique<Door>(address_for_hosts(round.interface, round.hosts));
    here.door = door->place();
    return door;
  } catch (const Error& error) {
    here.no_door = error.message();
    return nullptr;
  }
}

/// Returns the ways from one host to the doors of all others.
std::vector<Way> ways_from(const HostExam& from, const std::vector<HostExam>& exams) {
  std::vector<Way> ways;
  for (const HostExam& to : exams) {
    if (&to != &from && to.door.port != 0) {
      ways.push_back({to.name, to.door});
    }
  }
  return ways;
}

void ask_facts(Rounds& rounds, const Round& round) {
  rounds.ask_all(
      kFactsPatience,
      [&](std::size_t i) {
        return line_of(
            "ask",
            "facts",
            FactsQuestion{.driver = rounds.here().door.address, .bind = round.hosts[i].address});
      },
      [&](std::size_t i, const HostAnswer& answer) {
        auto content = answer.content.get<FactsAnswer>();
        rounds.exam(i).facts = std::move(content.facts);
        rounds.exam(i).door = std::move(content.door);
        rounds.exam(i).no_door = std::move(content.no_door);
      });
}

void ask_times(Rounds& rounds, std::size_t hosts) {
  std::vector<double> asked(hosts);
  rounds.ask_all(
      kTimePatience,
      [&](std::size_t i) {
        asked[i] = seconds(std::chrono::system_clock::now());
        return line_of("ask", "time", Json::object());
      },
      [&](std::size_t i, const HostAnswer& answer) {
        rounds.exam(i).clock.narrow(
            asked[i], answer.content.get<TimeAnswer>().unix_seconds, seconds(answer.arrived));
      });
}

void ask_ways(Rounds& rounds, const std::vector<std::string>& names) {
  const std::vector<Way> from_here = ways_from(rounds.here(), rounds.exams());
  rounds.ask_all(
      kWaysPatience,
      [&](std::size_t i) {
        return line_of(
            "ask",
            "ways",
            WaysQuestion{.ways = ways_from(rounds.exam(i), rounds.exams()), .names = names});
      },
      [&](std::size_t i, const HostAnswer& answer) {
        auto content = answer.content.get<WaysAnswer>();
        rounds.exam(i).ways = std::move(content.ways);
        rounds.exam(i).names = std::move(content.names);
      });
  rounds.here().ways = try_ways(from_here, kWayPatience);
  rounds.here().names = resolve(names, kNamePatience);
}

}  // namespace

std::vector<HostExam> ask_hosts(const Round& round) {
  Rounds rounds(round);
  rounds.here().facts = facts_of_this_machine();
  if (round.hosts.empty()) {
    return rounds.exams();
  }
  const std::unique_ptr<Door> door = open_here(round, rounds.here());
  ask_facts(rounds, round);
  for (int i = 0; i < kTimeQuestions; ++i) {
    ask_times(rounds, round.hosts.size());
  }
  std::vector<std::string> names;
  for (const Host& host : round.hosts) {
    names.push_back(host_name(host));
  }
  ask_ways(rounds, names);
  return rounds.exams();
}

}  // namespace stagecraft::tools
