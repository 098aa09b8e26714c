#include "stagecraft/scheduler/costs/operator_list_hash.h"

#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("the hash of operators tells their number, their names and their order",
          "[scheduler][costs]") {
  const OperatorListHash hash = hash_of_operators(Names{"aten::t", "aten::add.Tensor"});
  CHECK(hash.operators == 2);
  CHECK(hash == hash_of_operators(Names{"aten::t", "aten::add.Tensor"}));
  for (const Names& others : {Names{"aten::add.Tensor", "aten::t"},
                              Names{"aten::t", "aten::add.Scalar"},
                              Names{"aten::taten", "::add.Tensor"},
                              Names{"aten::t"},
                              Names{}}) {
    CHECK_FALSE(hash == hash_of_operators(others));
  }
  // FNV-1a of "a" and a newline: files keep it, so it must not change.
  CHECK(to_string(hash_of_operators(Names{"a"})) == "1 089bdc07b544e7b2");
}

TEST_CASE("the hash of operators is read from its text alone", "[scheduler][costs]") {
  const OperatorListHash hash = hash_of_operators(Names{"aten::t", "aten::add.Tensor"});
  CHECK(operator_list_hash_in(to_string(hash)) == hash);
  for (const char* text : {"",
                           "2",
                           "2 ",
                           "2 12",
                           "x 0000000000000012",
                           "-2 0000000000000012",
                           "2 000000000000001g",
                           "2 00000000000000012",
                           "2  0000000000000012",
                           "2 0000000000000012 "}) {
    CAPTURE(text);
    CHECK_FALSE(operator_list_hash_in(text));
  }
}

}  // namespace
}  // namespace stagecraft
