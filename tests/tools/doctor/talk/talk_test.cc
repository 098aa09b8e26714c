#include "stagecraft/tools/doctor/talk/talk.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/doctor/exams.h"

namespace stagecraft::tools {
namespace {

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

}  // namespace
}  // namespace stagecraft::tools
