#include "stagecraft/tools/doctor/checks/pair_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/tools/doctor/talk/limits.h"

namespace stagecraft::tools {
namespace {

constexpr double kMilliseconds = 1e3;

using Findings = std::vector<Finding>;
/// The hosts that gave each answer, by the answer.
using Groups = std::map<std::string, std::vector<std::string>>;

void add(Findings& findings, const char* check, Level level, std::string what, std::string remedy) {
  findings.push_back({kBetween, check, level, std::move(what), std::move(remedy)});
}

template <class What>
Groups groups_of(const std::vector<HostExam>& exams, const What& what) {
  Groups groups;
  for (const HostExam& exam : exams) {
    if (exam.facts) {
      groups[what(*exam.facts)].push_back(exam.name);
    }
  }
  return groups;
}

/// Returns "AVX2 on node-a; AVX512 on this machine, node-b".
std::string text_of(const Groups& groups) {
  std::string text;
  for (const auto& [what, who] : groups) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", what, fmt::join(who, ", "));
  }
  return text;
}

void check_builds(const std::vector<HostExam>& exams, Findings& findings) {
  const Groups groups = groups_of(exams, [](const HostFacts& facts) {
    return fmt::format("protocol {}, {}", facts.protocol, facts.build);
  });
  if (groups.size() == 1) {
    add(findings, "build", Level::Ok, "the same on all hosts", "");
  } else {
    add(findings,
        "build",
        Level::Problem,
        "hosts have several: " + text_of(groups),
        "install one build on all hosts: a driver admits no workers of another build");
  }
}

void check_processors(const std::vector<HostExam>& exams, Findings& findings) {
  std::vector<NamedProcessor> all;
  for (const HostExam& exam : exams) {
    if (exam.facts) {
      all.emplace_back(exam.name, exam.facts->cpu);
    }
  }
  const auto difference = difference_of(all);
  if (!difference) {
    add(findings, "processor", Level::Ok, "all choose the same code", "");
    return;
  }
  add(findings,
      "processor",
      difference->certain ? Level::Problem : Level::Note,
      "hosts " + what_text(*difference),
      difference->remedy);
}

void check_clock(const HostExam& exam, Findings& findings) {
  const double certain = exam.clock.certain();
  const double size = std::abs(certain);
  if (!std::isfinite(exam.clock.low) || !std::isfinite(exam.clock.high)) {
    return;  // not asked, or no answer
  }
  if (size <= kClockNote) {
    const double most = std::max(std::abs(exam.clock.low), std::abs(exam.clock.high));
    findings.push_back({exam.name,
                        "clock",
                        Level::Ok,
                        fmt::format("within {:.1f} ms of this machine's", most * kMilliseconds),
                        ""});
    return;
  }
  const bool fails = size > kClockProblem;
  findings.push_back(
      {exam.name,
       "clock",
       fails ? Level::Problem : Level::Note,
       fmt::format(
           "{:.1f} s {} this machine's, at least; {}",
           size,
           certain < 0 ? "behind" : "ahead of",
           fails
               ? "by one of the two clocks, certificates of a run are not valid yet or have expired"
               : "logs and traces of the two are out of order by that much"),
       "set the clocks by NTP on both: timedatectl set-ntp true, or chronyd"});
}

/// Returns the addresses of the name on each host, except on its own: hosts often call themselves
/// 127.0.1.1.
Groups meanings_of(const std::string& name, const std::vector<HostExam>& exams) {
  Groups meanings;
  for (const HostExam& exam : exams) {
    const auto known = exam.names.find(name);
    const bool own = exam.name == name || exam.name.ends_with("@" + name) ||
                     (exam.facts && exam.facts->name == name);
    if (known != exam.names.end() && !own) {
      meanings[fmt::format("{}", fmt::join(known->second, " "))].push_back(exam.name);
    }
  }
  return meanings;
}

void check_names(const std::vector<HostExam>& exams, Findings& findings) {
  bool alike = true;
  for (const HostExam& exam : exams) {
    const std::string name = exam.name.substr(exam.name.find('@') + 1);
    const Groups meanings = meanings_of(name, exams);
    if (meanings.size() > 1) {
      alike = false;
      add(findings,
          "names",
          Level::Note,
          fmt::format("{} is {}", name, text_of(meanings)),
          "make /etc/hosts or DNS agree; workers get addresses in digits and need no names, but "
          "other programs do");
    }
  }
  if (alike) {
    add(findings, "names", Level::Ok, "every name of the file means the same host everywhere", "");
  }
}

Finding closed(const HostExam& from, const TriedWay& tried) {
  const DoorPlace& door = tried.way.door;
  return {kBetween,
          "ways",
          Level::Problem,
          fmt::format("{} cannot reach {} ({}, port {}): {}",
                      from.name,
                      tried.way.to,
                      door.address,
                      door.port,
                      tried.fault),
          fmt::format("let TCP from {} to {} through the firewalls, to all ports that the system "
                      "chooses from (net.ipv4.ip_local_port_range), or {}",
                      from.name,
                      tried.way.to,
                      tried.way.to == kHere
                          ? "name another address of this machine by --interface, here and for "
                            "launch"
                          : "give its line in the hosts' file an addr= that the others reach")};
}

void check_ways(const std::vector<HostExam>& exams, Findings& findings) {
  std::size_t tried = 0, open = 0;
  for (const HostExam& from : exams) {
    for (const TriedWay& way : from.ways) {
      ++tried;
      if (way.fault.empty()) {
        ++open;
      } else {
        findings.push_back(closed(from, way));
      }
    }
  }
  const std::size_t all = exams.size() * (exams.size() - 1);
  if (tried < all) {
    add(findings,
        "ways",
        Level::Note,
        fmt::format("{} of {} ways were not tried: a host at one end did not answer, or has no "
                    "address",
                    all - tried,
                    all),
        "mend that first, and run the doctor again");
  } else if (open == all) {
    add(findings, "ways", Level::Ok, fmt::format("all {} are open", all), "");
  }
}

}  // namespace

std::vector<Finding> check_pairs(const std::vector<HostExam>& exams) {
  std::vector<Finding> findings;
  if (exams.size() < 2) {
    return findings;
  }
  check_builds(exams, findings);
  check_processors(exams, findings);
  for (const HostExam& exam : exams) {
    check_clock(exam, findings);
  }
  check_names(exams, findings);
  check_ways(exams, findings);
  return findings;
}

}  // namespace stagecraft::tools
