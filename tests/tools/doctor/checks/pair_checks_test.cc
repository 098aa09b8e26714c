#include "stagecraft/tools/doctor/checks/pair_checks.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/doctor/exams.h"
#include "stagecraft/tools/doctor/checks/machine_checks.h"
#include "stagecraft/tools/doctor/report.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

Finding of_pairs(const std::vector<HostExam>& exams, const std::string& check) {
  return found(check_pairs(exams), check);
}

TEST_CASE("machines that are well have no problem", "[tools][doctor]") {
  const std::vector<HostExam> exams = cluster({"node-a", "node-b"});
  std::vector<Finding> findings = check_pairs(exams);
  for (const HostExam& exam : exams) {
    std::ranges::copy(check_machine(exam, 4), std::back_inserter(findings));
  }
  CHECK_FALSE(has_problem(findings));
  CHECK(found(findings, "ways").what == "all 6 are open");
  CHECK(found(findings, "gpu").level == Level::Note);
  CHECK(check_pairs({well(kHere)}).empty());
}

TEST_CASE("another build on a host is a problem", "[tools][doctor]") {
  auto exams = cluster({"node-a", "node-b"});
  CHECK(of_pairs(exams, "build").level == Level::Ok);
  exams[2].facts->protocol = 4;
  const Finding finding = of_pairs(exams, "build");
  CHECK(finding.level == Level::Problem);
  CHECK_THAT(finding.what,
             ContainsSubstring("protocol 4, stagecraft 0.1.0 on node-b") &&
                 ContainsSubstring("protocol 5, stagecraft 0.1.0 on this machine, node-a"));
}

TEST_CASE("processors that compute other bits are told, with what binds them", "[tools][doctor]") {
  auto exams = cluster({"node-a", "node-b"});
  CHECK(of_pairs(exams, "processor").level == Level::Ok);
  SECTION("AVX2 and AVX512") {
    exams[0].facts->cpu.capability = exams[2].facts->cpu.capability = "AVX512";
    const Finding finding = of_pairs(exams, "processor");
    CHECK(finding.level == Level::Problem);
    CHECK_THAT(finding.what, ContainsSubstring("AVX2 on node-a; AVX512 on this machine, node-b"));
    CHECK_THAT(finding.remedy, ContainsSubstring("ATEN_CPU_CAPABILITY=avx2"));
  }
  SECTION("neither") {
    exams[1].facts->cpu.capability = "DEFAULT";
    CHECK_THAT(of_pairs(exams, "processor").remedy,
               ContainsSubstring("ATEN_CPU_CAPABILITY=default"));
  }
  SECTION("another model, alike to ATen") {
    exams[1].facts->cpu.vendor = "GenuineIntel";
    CHECK(of_pairs(exams, "processor").level == Level::Note);
    CHECK_THAT(of_pairs(exams, "processor").remedy, ContainsSubstring("MKL_CBWR"));
  }
}

TEST_CASE("clocks differ by what no round trip explains", "[tools][doctor]") {
  auto exams = cluster({"node-a"});
  ClockBounds& clock = exams[1].clock;
  CHECK(clock.certain() == 0);
  CHECK(of_pairs(exams, "clock").level == Level::Ok);
  clock = {};
  clock.narrow(100.0, 130.0, 120.0);  // 10 to 30 s ahead
  clock.narrow(200.0, 225.0, 201.0);  // 24 to 25 s ahead
  CHECK(clock.certain() == 24);
  CHECK(of_pairs(exams, "clock").level == Level::Note);
  clock = {};
  clock.narrow(1000.0, 600.0, 1001.0);
  const Finding behind = of_pairs(exams, "clock");
  CHECK(behind.level == Level::Problem);
  CHECK(behind.host == "node-a");
  CHECK_THAT(behind.what, ContainsSubstring("400.0 s behind this machine's"));
  CHECK_THAT(behind.remedy, ContainsSubstring("NTP"));
}

TEST_CASE("a name that means several hosts is told, not what a host calls itself",
          "[tools][doctor]") {
  auto exams = cluster({"node-a", "me@node-b"});
  exams[0].names = {{"node-a", {"10.0.0.1"}}, {"node-b", {"10.0.0.2"}}};
  exams[1].names = {{"node-a", {"127.0.1.1"}}, {"node-b", {"10.0.0.2"}}};
  exams[2].names = {{"node-a", {"10.0.0.1"}}, {"node-b", {"127.0.1.1"}}};
  CHECK(of_pairs(exams, "names").level == Level::Ok);
  exams[2].names["node-a"] = {"10.0.0.9"};
  const Finding finding = of_pairs(exams, "names");
  CHECK(finding.level == Level::Note);
  CHECK(finding.what == "node-a is 10.0.0.1 on this machine; 10.0.0.9 on me@node-b");
}

TEST_CASE("a way that is closed names both ends, and the others stay good", "[tools][doctor]") {
  auto exams = cluster({"node-a", "node-b"});
  for (TriedWay& way : exams[2].ways) {
    way.fault = way.way.to == "node-a" ? "connection timed out" : "";
  }
  const auto findings = check_pairs(exams);
  CHECK(std::ranges::count(findings, Level::Problem, &Finding::level) == 1);
  const Finding finding = found(findings, "ways");
  CHECK(finding.what == "node-b cannot reach node-a (10.0.0.1, port 4000): connection timed out");
  CHECK_THAT(finding.remedy, ContainsSubstring("firewall") && ContainsSubstring("addr="));
  exams[1].ways.clear();
  CHECK_THAT(findings_text(check_pairs(exams)), ContainsSubstring("2 of 6 ways were not tried"));
  exams[2].ways = {{.way = {.to = kHere, .door = exams[0].door}, .fault = "connection refused"}};
  CHECK_THAT(of_pairs(exams, "ways").remedy, ContainsSubstring("--interface"));
}

}  // namespace
}  // namespace stagecraft::tools
