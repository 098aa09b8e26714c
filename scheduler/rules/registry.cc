#include "stagecraft/scheduler/rules/registry.h"

namespace stagecraft::rules {

// One declaration for each line of the table; the definitions are in the sources named for the
// rules.
void check_shape(const RuleInput& in, Violations& out);
void check_entries(const RuleInput& in, Violations& out);
void check_placement(const RuleInput& in, Violations& out);
void check_counts(const RuleInput& in, Violations& out);
void check_columns(const RuleInput& in, Violations& out);
void check_updates(const RuleInput& in, Violations& out);
void check_microbatch_order(const RuleInput& in, Violations& out);
void check_groups(const RuleInput& in, Violations& out);
void check_deadlock(const RuleInput& in, Violations& out);
void check_memory(const RuleInput& in, Violations& out);
void check_sharding(const RuleInput& in, Violations& out);
void check_listed_transfers(const RuleInput& in, Violations& out);
void check_transfers(const RuleInput& in, Violations& out);
void check_stage_graph(const RuleInput& in, Violations& out);
void check_tied_parameters(const RuleInput& in, Violations& out);
void check_microbatch_sizes(const RuleInput& in, Violations& out);

namespace {

const std::vector<RuleInfo>& table() {
  static const std::vector<RuleInfo> kTable{
      {{"V01", "V02"}, "rows of equal length, one for each device", check_shape},
      {{"V03", "V04", "V05", "V06"}, "cells name tasks that exist", check_entries},
      {{"V07"}, "a stage runs on one row", check_placement},
      {{"V08", "V09", "V10", "V11", "V12"}, "every task once, none missing", check_counts},
      {{"V20", "V21", "V22", "V23"}, "a cell uses earlier columns only", check_columns},
      {{"V24", "V25", "V26"}, "one update for each stage, after its backwards", check_updates},
      {{"V27"}, "a stage takes its microbatches in order", check_microbatch_order},
      {{"V28"}, "tasks of a group do not wait for each other", check_groups},
      {{"V29"}, "the rows of a list run to their end", check_deadlock},
      {{"V30"}, "no row holds more than its budget", check_memory},
      {{"V08", "V24", "V25", "V26"}, "parameters are gathered and reduced in time", check_sharding},
      {{"V02", "V04", "V05", "V07", "V08", "V31", "V35"},
       "the transfers of a file fit its tasks and their streams",
       check_listed_transfers},
      {{"V31", "V35"}, "transfers keep one order and fit their streams", check_transfers},
      {{"V32"}, "the stage graph has no cycle", check_stage_graph},
      {{"V33"}, "gradients of a shared parameter are summed", check_tied_parameters},
      {{"V34"}, "each stage has a whole number of microbatches", check_microbatch_sizes},
  };
  return kTable;
}

}  // namespace

std::span<const RuleInfo> rule_table() {
  return table();
}

}  // namespace stagecraft::rules
