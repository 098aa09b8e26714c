/// Makes what the doctor has found out about hosts without a fault, for tests that add one. Finds a
/// check's finding.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/doctor/checks/finding.h"
#include "stagecraft/tools/doctor/talk/exam.h"

namespace stagecraft::tools {

inline HostExam well(const std::string& name) {
  HostExam exam;
  exam.name = name;
  exam.workers = 2;
  exam.program = "/opt/bin/stagecraft";
  exam.facts = HostFacts{.name = name,
                         .protocol = 5,
                         .build = "stagecraft 0.1.0",
                         .cpu = {.vendor = "AuthenticAMD",
                                 .name = "AMD EPYC",
                                 .family = 25,
                                 .model = 1,
                                 .capability = "AVX2",
                                 .features = {"avx2"},
                                 .variables = {}},
                         .processors = 2,
                         .memory = {{"this machine", 8e9}},
                         .memfd = "",
                         .locked_bytes = 8 << 20,
                         .open_files = 1024,
                         .gpu = {.missing = "no NVIDIA driver is installed"}};
  exam.door = {.address = "10.0.0.1", .port = 4000, .token = "t"};
  exam.clock.narrow(100.0, 100.1, 100.2);
  return exam;
}

/// Returns this machine and these hosts, with every way open.
inline std::vector<HostExam> cluster(const std::vector<std::string>& hosts) {
  std::vector<HostExam> exams{well(kHere)};
  for (const std::string& host : hosts) {
    exams.push_back(well(host));
  }
  for (HostExam& from : exams) {
    for (const HostExam& to : exams) {
      if (from.name != to.name) {
        from.ways.push_back({.way = {.to = to.name, .door = to.door}, .fault = ""});
      }
    }
  }
  return exams;
}

/// Returns the gravest finding of a check.
inline Finding found(const std::vector<Finding>& findings, const std::string& check) {
  Finding gravest{.host = "nobody", .check = check, .level = Level::Ok, .what = "", .remedy = ""};
  bool any = false;
  for (const Finding& finding : findings) {
    if (finding.check == check && (!any || finding.level > gravest.level)) {
      gravest = finding;
      any = true;
    }
  }
  REQUIRE(any);
  CHECK((gravest.level != Level::Problem || !gravest.remedy.empty()));
  return gravest;
}

}  // namespace stagecraft::tools
