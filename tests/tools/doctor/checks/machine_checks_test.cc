#include "stagecraft/tools/doctor/checks/machine_checks.h"

#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/doctor/exams.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

Finding of_machine(const HostExam& exam, const std::string& check, int workers = 4) {
  return found(check_machine(exam, workers), check);
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

}  // namespace
}  // namespace stagecraft::tools
