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
  exam.facts->open_files = 97;
  CHECK(of_machine(exam, "open files", 3).level == Level::Problem);
  CHECK_THAT(of_machine(exam, "open files", 3).what,
             ContainsSubstring("97 may be open, a worker of 3 workers needs 100"));
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
  exam.facts->open_files = 203;
  CHECK(of_machine(exam, "open files", 19).level == Level::Ok);
  CHECK(of_machine(exam, "open files", 20).level == Level::Problem);
  exam.name = "node-a";
  CHECK(of_machine(exam, "open files", 21).level == Level::Ok);
}

TEST_CASE("a host that cannot use its GPUs says why", "[tools][doctor]") {
  HostExam exam = well("node-a");
  GpuFacts& gpu = exam.facts->gpu;
  CHECK(of_machine(exam, "gpu").level == Level::Note);
  gpu = {.missing = "",
         .remedy = "",
         .runtime = 13000,
         .driver = 13000,
         .visible = 8,
         .visible_says = "",
         .nccl = "2.28.9"};
  CHECK(of_machine(exam, "gpu").level == Level::Ok);
  CHECK_THAT(of_machine(exam, "gpu").what, ContainsSubstring("8 GPUs visible"));
  CHECK(of_machine(exam, "locked memory").level == Level::Note);
  gpu.missing = "the driver shows no GPU";
  gpu.remedy = "let programs see one";
  gpu.visible_says = "-1";
  const Finding finding = of_machine(exam, "gpu");
  CHECK(finding.level == Level::Problem);
  CHECK(finding.remedy == gpu.remedy);
  CHECK_THAT(finding.what,
             ContainsSubstring(gpu.missing) && ContainsSubstring("CUDA_VISIBLE_DEVICES \"-1\""));
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
