// SPDX-License-Identifier: Apache-2.0
/** The dialogs that change a lease, for every page that shows leases. */
export { ChangeDialog } from "./lease/change.tsx";
export { EndNowDialog } from "./lease/end-now.tsx";
export { ExtendDialog } from "./lease/extend.tsx";
export { MergeDialog, SplitDialog, SwapDialog } from "./lease/surgery.tsx";
export { GiveDialog } from "./lease/transfer.tsx";
