/*
 * What pmi.c shows beside its client.
 */
#ifndef NMAD_BOOT_PMI_H
#define NMAD_BOOT_PMI_H

/*
 * Read PMI_process_mapping, "(vector,(first,nodes,each),...)": node[r] becomes
 * the number of the node of rank r; the blocks are repeated until all of
 * `size` ranks are placed. 0 or -EPROTO, silently.
 */
int nm_boot_pmi_mapping(const char *text, int size, int *node);

#endif
