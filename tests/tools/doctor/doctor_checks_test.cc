/// Tests the doctor's findings from facts: each possible fault, and the repair that it names.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tools/doctor/checks/credential_checks.h"
#include "stagecraft/tools/doctor/checks/machine_checks.h"
#include "stagecraft/tools/doctor/checks/pair_checks.h"
#include "stagecraft/tools/doctor/report.h"
#include "stagecraft/tools/doctor/talk/talk.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

HostExam well(const std::string& name) {
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
                         .gpu = {}};
  exam.door = {.address = "10.0.0.1", .port = 4000, .token = "t"};
  exam.clock.narrow(100.0, 100.1, 100.2);
  return exam;
}

/// Returns this machine and these hosts, with every way open.
std::vector<HostExam> cluster(const std::vector<std::string>& hosts) {
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
Finding found(const std::vector<Finding>& findings, const std::string& check) {
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

Finding of_machine(const HostExam& exam, const std::string& check, int workers = 4) {
  return found(check_machine(exam, workers), check);
}

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

TEST_CASE("limits are held against what the cluster needs", "[tools][doctor]") {
  HostExam exam = well("node-a");
  exam.facts->open_files = 89;
  CHECK(of_machine(exam, "open files", 3).level == Level::Problem);
  CHECK_THAT(of_machine(exam, "open files", 3).what,
             ContainsSubstring("89 may be open, a worker of 3 workers needs 90"));
  exam.facts->open_files = -1;
  CHECK(of_machine(exam, "open files", 100000).level == Level::Ok);
  exam.facts->memory = {{"the control group /job", 200e6}, {"this machine", 8e9}};
  CHECK(of_machine(exam, "memory").level == Level::Problem);
  CHECK_THAT(of_machine(exam, "memory").what, ContainsSubstring("the control group /job"));
  CHECK_THAT(of_machine(exam, "memory").remedy, ContainsSubstring("memory.max"));
  exam.workers = 1;
  CHECK(of_machine(exam, "memory").level == Level::Ok);
  exam.facts->memfd = "operation not permitted";
  CHECK(of_machine(exam, "shared memory").level == Level::Note);
}

TEST_CASE("a driver needs more open files than a worker", "[tools][doctor]") {
  HostExam exam = well(kHere);
  exam.facts->open_files = 200;
  CHECK(of_machine(exam, "open files", 20).level == Level::Ok);
  CHECK(of_machine(exam, "open files", 21).level == Level::Problem);
  exam.name = "node-a";
  CHECK(of_machine(exam, "open files", 21).level == Level::Ok);
}

TEST_CASE("a build without CUDA says so, one with it says what it lacks", "[tools][doctor]") {
  HostExam exam = well("node-a");
  exam.facts->gpu = {.linked = false,
                     .runtime = 13000,
                     .driver = 13000,
                     .visible = 8,
                     .visible_says = "",
                     .nccl = "2.28.9"};
  const Finding without = of_machine(exam, "gpu");
  CHECK(without.level == Level::Note);
  CHECK_THAT(without.what,
             ContainsSubstring("processors alone") && ContainsSubstring("8 GPUs visible"));
  GpuFacts& gpu = exam.facts->gpu;
  gpu.linked = true;
  CHECK(of_machine(exam, "gpu").level == Level::Ok);
  CHECK(of_machine(exam, "locked memory").level == Level::Note);
  SECTION("no driver") {
    gpu.driver = 0;
    CHECK_THAT(of_machine(exam, "gpu").remedy, ContainsSubstring("driver"));
  }
  SECTION("an old driver") {
    gpu.driver = 12040;
    CHECK_THAT(of_machine(exam, "gpu").what, ContainsSubstring("CUDA 12.4"));
  }
  SECTION("none visible") {
    gpu.visible = 0;
    gpu.visible_says = "-1";
    CHECK_THAT(of_machine(exam, "gpu").what, ContainsSubstring("CUDA_VISIBLE_DEVICES is \"-1\""));
  }
  SECTION("no NCCL") {
    gpu.nccl = "";
    CHECK_THAT(of_machine(exam, "gpu").remedy, ContainsSubstring("tools/setup --cuda"));
  }
  CHECK(of_machine(exam, "gpu").level ==
        (gpu.driver == 13000 && gpu.visible > 0 && !gpu.nccl.empty() ? Level::Ok : Level::Problem));
}

TEST_CASE("a host that does not answer is told with what to try", "[tools][doctor]") {
  HostExam exam = well("node-a");
  exam.facts.reset();
  exam.silence = "is out of reach: ssh could not connect to node-a, or lost it";
  CHECK(check_machine(exam, 2).size() == 1);
  CHECK(of_machine(exam, "ssh").level == Level::Problem);
  CHECK_THAT(of_machine(exam, "ssh").remedy, ContainsSubstring("`ssh node-a true`"));
  exam.silence = "ended with exit status 127";
  CHECK_THAT(of_machine(exam, "ssh").remedy, ContainsSubstring("/opt/bin/stagecraft"));
}

TEST_CASE("an address that a host does not have is told by the host", "[tools][doctor]") {
  HostExam exam = well("node-a");
  exam.door = {};
  exam.no_door = "this host has no interface \"10.9.9.9\"";
  CHECK_THAT(of_machine(exam, "address").remedy, ContainsSubstring("addr="));
  exam.name = kHere;
  CHECK_THAT(of_machine(exam, "address").remedy, ContainsSubstring("--interface"));
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

TEST_CASE("credentials are told with their dates, and what to renew", "[tools][doctor]") {
  const tests::TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  const auto now = std::chrono::system_clock::now();
  make_credentials(dir, {.members = 1, .cluster = "north", .starts = now, .durable = false});
  const auto look = [&](const std::string& place, security::TimePoint when) {
    return check_credentials(security::inspect_credentials(place), place, when);
  };
  CHECK(found(look(dir, now), "worker-0").level == Level::Ok);
  CHECK_THAT(found(look(dir, now), "driver").what, ContainsSubstring("valid until"));
  CHECK(found(look(dir, now + 24h * 6 + 1h), "worker-0").level == Level::Note);
  CHECK_THAT(found(look(dir, now + 24h * 7), "worker-0").remedy,
             ContainsSubstring("credentials renew " + dir + " worker-0"));
  issue_member(dir, "worker-0", 60s, now - 24h);
  CHECK(found(look(dir, now), "worker-0").level == Level::Problem);
  CHECK_THAT(found(look(dir + "/worker-0", now), "worker-0").remedy,
             ContainsSubstring("renew DIR worker-0"));
}

TEST_CASE("what hosts say to each other is read as it was written", "[tools][doctor]") {
  const HostExam exam = well("node-a");
  const Json content = content_of(
      line_of(
          "doctor", "facts", FactsAnswer{.facts = *exam.facts, .door = exam.door, .no_door = ""}),
      "doctor");
  REQUIRE(content.is_object());
  const auto read = content.get<FactsAnswer>();
  CHECK(read.facts.build == exam.facts->build);
  CHECK(read.facts.memory.at(0).bytes == exam.facts->memory.at(0).bytes);
  CHECK(read.door.port == exam.door.port);
  // Another build may send less, and a shell may send anything.
  CHECK(content_of(R"({"doctor":"facts"})", "doctor").get<FactsAnswer>().facts.protocol == 0);
  CHECK(content_of("Last login: today", "doctor").is_null());
  CHECK(content_of(R"({"ask":"time"})", "doctor").is_null());
  CHECK(content_of("[1]", "doctor").is_null());
  CHECK_THROWS_AS(content_of(R"({"doctor":"facts","facts":7})", "doctor").get<FactsAnswer>(),
                  Json::exception);
}

TEST_CASE("the report has a line for what is good and a remedy for what is not",
          "[tools][doctor]") {
  const std::vector<Finding> findings{{"node-a", "memory", Level::Ok, "8 GiB left", ""},
                                      {"node-b", "memory", Level::Problem, "8 B left", "buy more"},
                                      {"node-a", "gpu", Level::Note, "none", ""}};
  CHECK(findings_text(findings) ==
        "node-a\n"
        "  ok       memory         8 GiB left\n"
        "  note     gpu            none\n"
        "node-b\n"
        "  problem  memory         8 B left\n"
        "                          mend: buy more\n"
        "1 problem, 1 note\n");
  const Json json = Json::parse(findings_json(findings, {well("node-a")}));
  CHECK(json["good"] == false);
  CHECK(json["findings"].size() == 3);
  CHECK(json["findings"][1]["level"] == "problem");
  CHECK(json["hosts"][0]["facts"]["cpu"]["capability"] == "AVX2");
}

}  // namespace
}  // namespace stagecraft::tools
