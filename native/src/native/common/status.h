// What an operator says about its arguments. The front end makes a typed error of it.
#pragma once
#include <cstddef>

namespace treeward {

enum class Fault {
  none,
  length,  // an array's length does not fit the others
  value,   // an entry of an array
  option,
  cycle,   // the causal order is not acyclic
};

struct Status {
  Fault fault = Fault::none;
  const char* name = "";  // the argument
  std::size_t index = 0;  // the entry, for `value` and `cycle`
  const char* rule = "";  // what it breaks: "must be finite"

  bool ok() const { return fault == Fault::none; }
};

}  // namespace treeward
